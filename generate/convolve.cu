// Convolutions of float32 tensors as products by Hopper's tensor cores, in generated kernels: filters by what
// each of them reads of the input for one output. Both are rounded to TF32 and packed before, four channels
// together; an output of a transposed convolution reads by the taps of its class, its place's remainders by
// the strides.
// Over 800 lines: three ways to bring factors, of which a generated source takes one.

//@ convolve
enum {
    CONVOLVE_LINE = 128, // bytes of shared memory: 8 times four channels
    CONVOLVE_THREADS = 256,
    CONVOLVE_GROUP = 64 * CONVOLVE_LINE // of filters
};

// Of three dimensions. quads: four channels each. Sizes are those of one image, and of a filter. A tile has
// the outputs of a box; 0: those that follow one another.
struct Convolution {
    int in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int quads, transposed, box[3];
};

// Along one dimension output i of a class, which lies at first + i * step, reads by its tap t, which is
// number tap + t * taps_step, the input at base + i * move + t * turn.
struct ConvolveSide {
    int count, first, step, base, move, turn, tap, taps_step, taps;
};

__device__ __forceinline__ ConvolveSide convolve_side(const Convolution &v, int d, int rest)
{
    const int s = v.stride[d], p = v.padding[d], n = v.out[d], l = v.dilation[d];
    if (!v.transposed) return {n, 0, 1, -p, s, l, 0, 1, v.kernel[d]};
    const int first = (rest + s - p % s) % s, taps = (v.kernel[d] - rest + s - 1) / s;
    return {(n - first + s - 1) / s, first, s, (first + p) / s,    1,
            s > 1 ? -1 : -l,         rest,  s, taps < 0 ? 0 : taps};
}

// A place along each dimension.
struct ConvolveSpot {
    int z, y, x;
};

// One item of a block's work. first: of its box.
struct ConvolvePlace {
    long long batch;
    int row, column;
    ConvolveSide side[3];
    ConvolveSpot first;
};

__device__ __forceinline__ int convolve_classes(const Convolution &v)
{
    return v.transposed ? v.stride[0] * v.stride[1] * v.stride[2] : 1;
}

// Outputs of the largest class along a dimension, and boxes of them.
__device__ __forceinline__ int convolve_most(const Convolution &v, int d)
{
    const int by = v.transposed ? v.stride[d] : 1;
    return (v.out[d] + by - 1) / by;
}

__device__ __forceinline__ int convolve_boxes(const Convolution &v, int d)
{
    return (convolve_most(v, d) + v.box[d] - 1) / v.box[d];
}

// Tiles of the largest class.
template <int COLUMNS> __device__ __forceinline__ int convolve_tiles(const Convolution &v)
{
    if (v.box[0]) return convolve_boxes(v, 0) * convolve_boxes(v, 1) * convolve_boxes(v, 2);
    return (convolve_most(v, 0) * convolve_most(v, 1) * convolve_most(v, 2) + COLUMNS - 1) /
           COLUMNS;
}

// The n-th one: filters vary fastest, then classes.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ ConvolvePlace convolve_place(const Convolution &v, int rows, long long n)
{
    const int down = (rows + ROWS - 1) / ROWS, classes = convolve_classes(v),
              across = convolve_tiles<COLUMNS>(v);
    ConvolvePlace p;
    p.row = (int)(n % down) * ROWS;
    n /= down;
    int rest = (int)(n % classes);
    n /= classes;
    const int tile = (int)(n % across);
    p.column = tile * COLUMNS;
    p.batch = n / across;
    if (v.box[0]) {
        const int wide = convolve_boxes(v, 2), high = convolve_boxes(v, 1);
        p.first = {tile / wide / high * v.box[0], tile / wide % high * v.box[1],
                   tile % wide * v.box[2]};
    }
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        const int s = v.transposed ? v.stride[d] : 1;
        p.side[d] = convolve_side(v, d, rest % s);
        rest /= s;
    }
#pragma unroll
    for (int d = 1; d < 3; d++) {
        if (p.side[d].count < 1) p.side[0].count = 0, p.side[d].count = 1;
        if (p.side[d].taps < 1) p.side[0].taps = 0;
    }
    return p;
}

// What a thread copies: for each stage the same place of 128 bytes of several lines, and the next quads of
// channels there.
template <int ROWS, int COLUMNS> struct ConvolveCopies {
    int offset[COLUMNS / 32], d[COLUMNS / 32], h[COLUMNS / 32], w[COLUMNS / 32];
    int quad, tap[3], left; // left: stages of the item
    ConvolvePlace p;

    __device__ __forceinline__ void advance(const Convolution &v, int n)
    {
        for (quad += n; quad >= v.quads; quad -= v.quads) {
            if (++tap[2] < p.side[2].taps) continue;
            tap[2] = 0;
            if (++tap[1] < p.side[1].taps) continue;
            tap[1] = 0;
            tap[0]++;
        }
    }

    __device__ __forceinline__ void begin(const Convolution &v, int rows, long long item)
    {
        p = convolve_place<ROWS, COLUMNS>(v, rows, item);
        const ConvolveSide *s = p.side;
        const int outputs = s[0].count * s[1].count * s[2].count,
                  taps = s[0].taps * s[1].taps * s[2].taps;
#pragma unroll
        for (int j = 0; j < COLUMNS / 32; j++) {
            const int n = p.column + 32 * j + threadIdx.x / 8;
            const int x = n % s[2].count, y = n / s[2].count % s[1].count,
                      z = n / s[2].count / s[1].count;
            w[j] = s[2].base + x * s[2].move;
            h[j] = s[1].base + y * s[1].move;
            d[j] = n < outputs ? s[0].base + z * s[0].move : -(1 << 28);
            offset[j] = ((s[0].base + z * s[0].move) * v.in[1] + h[j]) * v.in[2] + w[j];
        }
        tap[0] = tap[1] = tap[2] = quad = 0;
        left = (taps * v.quads + 7) / 8;
        if (left < 1) left = 1;
        advance(v, threadIdx.x % 8);
    }

    __device__ __forceinline__ void fetch(const Convolution &v, int rows, const float *filters,
                                          const float *x, unsigned to)
    {
        const ConvolveSide *s = p.side;
        const int y = threadIdx.x / 8,
                  place = y * CONVOLVE_LINE + ((threadIdx.x % 8 ^ (y & 7)) << 4);
        const bool there = tap[0] < s[0].taps;
        const int number = ((s[0].tap + tap[0] * s[0].taps_step) * v.kernel[1] + s[1].tap +
                            tap[1] * s[1].taps_step) *
                               v.kernel[2] +
                           s[2].tap + tap[2] * s[2].taps_step;
        const int all = v.kernel[0] * v.kernel[1] * v.kernel[2] * v.quads;
        const float *from = filters + 4 * ((long long)(p.row + y) * all + number * v.quads + quad);
#pragma unroll
        for (int j = 0; j < ROWS / 32; j++)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             to + place + j * 32 * CONVOLVE_LINE),
                         "l"(from + j * 128ll * all),
                         "r"(there && p.row + y + 32 * j < rows ? 16 : 0));
        const int a = tap[0] * s[0].turn, b = tap[1] * s[1].turn, c = tap[2] * s[2].turn,
                  moved = (a * v.in[1] + b) * v.in[2] + c;
        const float *image = x + 4 * (p.batch * v.in[0] * v.in[1] * v.in[2] * v.quads + quad);
#pragma unroll
        for (int j = 0; j < COLUMNS / 32; j++) {
            const bool inside = there & ((unsigned)(d[j] + a) < (unsigned)v.in[0]) &
                                ((unsigned)(h[j] + b) < (unsigned)v.in[1]) &
                                ((unsigned)(w[j] + c) < (unsigned)v.in[2]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             to + ROWS * CONVOLVE_LINE + place + j * 32 * CONVOLVE_LINE),
                         "l"(image + 4ll * (offset[j] + moved) * v.quads), "r"(inside ? 16 : 0));
        }
        advance(v, 8);
        left--;
    }
};

// Output n of an item. Those of a box vary fastest in it.
__device__ __forceinline__ ConvolveSpot convolve_spot(const Convolution &v, const ConvolvePlace &p,
                                                      unsigned n)
{
    if (v.box[0]) {
        const unsigned high = v.box[1], wide = v.box[2];
        return {(int)(p.first.z + n / wide / high), (int)(p.first.y + n / wide % high),
                (int)(p.first.x + n % wide)};
    }
    const int i = p.column + n, y = i / p.side[2].count;
    return {y / p.side[1].count, y % p.side[1].count, i % p.side[2].count};
}

__device__ __forceinline__ bool convolve_inside(const Convolution &v, const ConvolvePlace &p, int n)
{
    const ConvolveSide *s = p.side;
    if (!v.box[0]) return p.column + n < s[0].count * s[1].count * s[2].count;
    const ConvolveSpot at = convolve_spot(v, p, n);
    return at.z < s[0].count && at.y < s[1].count && at.x < s[2].count;
}

// Where output n of an item lies in its image; -1: nowhere.
__device__ __forceinline__ int convolve_output(const Convolution &v, const ConvolvePlace &p, int n)
{
    const ConvolveSide *s = p.side;
    const ConvolveSpot at = convolve_spot(v, p, n);
    if (at.z >= s[0].count || (v.box[0] && (at.y >= s[1].count || at.x >= s[2].count))) return -1;
    return ((s[0].first + at.z * s[0].step) * v.out[1] + s[1].first + at.y * s[1].step) * v.out[2] +
           s[2].first + at.x * s[2].step;
}

// Where a warp's sum of row r lies, of sixteen: rows 0 to 3 share no banks and, by QUADS, 0, 4, 8 and 12
// neither.
template <bool QUADS> __device__ __forceinline__ int convolve_staged(int r, int column)
{
    return r * 64 + (column ^ (QUADS ? (r ^ r >> 2) % 4 : r % 4) * 8);
}

// Sixteen rows of staged sums, of which a lane has two outputs. first, second: their places; -1: none.
struct ConvolveLines {
    const float *stage;
    long long batch;
    int row, first, second;
    bool apart;
};

template <typename E>
__device__ __forceinline__ void convolve_lines(const ConvolveLines &l, const E &each)
{
    const int lane = threadIdx.x % 32, one = l.apart ? lane : 2 * lane,
              other = l.apart ? lane + 32 : 2 * lane + 1;
    if (l.first < 0) return;
#pragma unroll 2
    for (int r = 0; r < 16; r++)
        each(l.batch, l.row + r, l.first, l.second,
             make_float2(l.stage[convolve_staged<0>(r, one)],
                         l.stage[convolve_staged<0>(r, other)]));
}

// Stores four rows of an output at a time: channels of what another convolution reads. Four lanes have the
// sixteen channels of an output.
template <typename E> struct ConvolveQuads {
    E each;
};
template <typename E> struct ConvolveIsQuads {
    enum { yes = 0 };
};
template <typename E> struct ConvolveIsQuads<ConvolveQuads<E>> {
    enum { yes = 1 };
};

template <typename E> __device__ __forceinline__ ConvolveQuads<E> convolve_quads(const E &each)
{
    return {each};
}

template <typename E>
__device__ __forceinline__ void convolve_lines(const ConvolveLines &l, const ConvolveQuads<E> &to)
{
    const int lane = threadIdx.x % 32, r = lane % 4 * 4;
#pragma unroll 4
    for (int i = 0; i < 8; i++) {
        const int c = lane / 4 + 8 * i, of = l.apart ? c % 32 : c / 2,
                  first = __shfl_sync(~0u, l.first, of), second = __shfl_sync(~0u, l.second, of);
        to.each(l.batch, l.row + r, (l.apart ? c / 32 : c % 2) ? second : first,
                make_float4(
                    l.stage[convolve_staged<1>(r, c)], l.stage[convolve_staged<1>(r + 1, c)],
                    l.stage[convolve_staged<1>(r + 2, c)], l.stage[convolve_staged<1>(r + 3, c)]));
    }
}

// Gives `each` the sums of two outputs at a time: neighbours, or, of a class whose outputs lie apart, such
// that the lanes' first ones are neighbours in it.
template <int N, typename E>
__device__ __forceinline__ void convolve_results(const Convolution &v, const float (&d)[N / 2],
                                                 float *stage, const ConvolvePlace &p, int row,
                                                 int column, E each)
{
    constexpr bool quads = ConvolveIsQuads<E>::yes;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool apart = v.transposed && v.stride[2] > 1;
    const int one = apart ? lane : 2 * lane, other = apart ? lane + 32 : 2 * lane + 1;
#pragma unroll
    for (int c = 0; c < N / 64; c++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int i = 8 * c + j, at = 8 * j + 2 * t;
            *(float2 *)(stage + convolve_staged<quads>(g, at)) =
                make_float2(d[4 * i], d[4 * i + 1]);
            *(float2 *)(stage + convolve_staged<quads>(g + 8, at)) =
                make_float2(d[4 * i + 2], d[4 * i + 3]);
        }
        const int n = column + c * 64, first = convolve_output(v, p, n + one),
                  second = convolve_output(v, p, n + other);
        __syncwarp();
        convolve_lines({stage, p.batch, row, first, second, apart}, each);
        __syncwarp();
    }
}

__device__ __forceinline__ unsigned long long convolve_lines_at(unsigned shared)
{
    return (unsigned long long)((shared & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Where a warp's sums lie in its block's tile. N: of its columns.
template <int ROWS, int COLUMNS> struct ConvolveWarp {
    static constexpr int N = ROWS == 64 ? COLUMNS / 2 : COLUMNS;
    int down, right;
    float *shared; // of the block, behind the sums of an item

    __device__ __forceinline__ ConvolveWarp()
    {
        extern __shared__ unsigned char raw[];
        const unsigned begin = (unsigned)__cvta_generic_to_shared(raw);
        shared = (float *)(raw + (((begin + 1023) & ~1023u) - begin));
        down = (ROWS == 64 ? 0 : threadIdx.x / 128 * 64) + threadIdx.x / 32 % 4 * 16;
        right = ROWS == 64 ? threadIdx.x / 128 * N : 0;
    }
};

// Of the CONVOLVE_THREADS that make sums.
__device__ __forceinline__ void convolve_sync()
{
    asm volatile("bar.sync 1, 256;" ::: "memory");
}

// The items of a block.
struct ConvolveItems {
    long long first, end, step;
};

// Factors that all threads copy. Results may lie where the stages of sums do.
struct ConvolveMemory {
    const float *filters, *x;
};

struct ConvolveAlone {
    static constexpr bool copies = false;
    float *shared;
};

template <int ROWS, int COLUMNS, int STAGES, bool OWN>
__device__ __forceinline__ ConvolveAlone convolve_begin(const Convolution &, int,
                                                        const ConvolveMemory &,
                                                        const ConvolveItems &)
{
    return {ConvolveWarp<ROWS, COLUMNS>().shared};
}

// The sums of an item: a block has ROWS filters, 64 or 128, and COLUMNS outputs, of either of which both
// groups of warps have half. Two blocks share a multiprocessor, so that one computes while the other one
// waits or stores.
template <int ROWS, int COLUMNS, int STAGES, int N>
__device__ __forceinline__ ConvolvePlace convolve_sums(const Convolution &v, int rows,
                                                       const ConvolveMemory &from_memory,
                                                       ConvolveAlone &, long long item,
                                                       float (&d)[N / 2])
{
    constexpr int LEFT = ROWS * CONVOLVE_LINE, STAGE = LEFT + COLUMNS * CONVOLVE_LINE;
    const float *filters = from_memory.filters, *x = from_memory.x;
    const ConvolveWarp<ROWS, COLUMNS> warp;
    const unsigned base = (unsigned)__cvta_generic_to_shared(warp.shared);
    const int down = ROWS == 64 ? 0 : threadIdx.x / 128 * 64, right = warp.right;
    ConvolveCopies<ROWS, COLUMNS> copies;
    copies.begin(v, rows, item);
    const int steps = copies.left;
    const auto fetch = [&](int stage) {
        if (copies.left > 0) copies.fetch(v, rows, filters, x, base + stage * STAGE);
        asm volatile("cp.async.commit_group;");
    };
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++) fetch(s);
    int stage = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const unsigned from = base + stage * STAGE;
        const unsigned long long a = convolve_lines_at(from + down * CONVOLVE_LINE),
                                 b = convolve_lines_at(from + LEFT + right * CONVOLVE_LINE);
#pragma unroll
        for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) convolve_multiply(d, a + 2 * i, b + 2 * i, k + i > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        fetch(stage < 1 ? STAGES - 1 : stage - 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    __syncthreads();
    return copies.p;
}

// Those of a block among `parts` that share an image, of one of `down` tiles of filters.
template <int COLUMNS>
__device__ __forceinline__ ConvolveItems convolve_shared(const Convolution &v, int down, int parts)
{
    const int all = convolve_classes(v) * convolve_tiles<COLUMNS>(v), tile = blockIdx.x % down,
              part = blockIdx.x / down % parts;
    const long long batch = blockIdx.x / down / parts;
    return {(batch * all + part) * down + tile, (batch + 1) * all * down, (long long)parts * down};
}

template <int ROWS, int COLUMNS, int STAGES, typename S, typename E>
__device__ __forceinline__ void convolve(const Convolution v, int rows, const S source, E each)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N;
    const long long item = blockIdx.x;
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, false>(v, rows, source, {item, item + 1, 1});
    if (room.copies) return;
    float d[N / 2];
    const ConvolvePlace p = convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
    convolve_sync();
    convolve_results<N>(v, d, room.shared + threadIdx.x / 32 * (16 * 64), p, p.row + warp.down,
                        warp.right, each);
}

//@ maps
// Factors that come by tensor maps, copied by one thread of a warp of its own, which runs ahead.
struct ConvolveMaps {
    const CUtensorMap &filters, &x;
};

// A block's stages in shared memory, with their barriers. copies: a thread that makes no sums. shared: where
// results may lie.
struct ConvolveRing {
    unsigned base, full, empty;
    bool copies;
    float *shared;
    Stage stage;
};

__device__ __forceinline__ int convolve_steps(const Convolution &v, const ConvolvePlace &p)
{
    return p.side[0].taps * p.side[1].taps * p.side[2].taps * ((v.quads + 7) / 8);
}

// Copies ROWS filters and the box of a tap, 32 channels of each.
template <int LEFT>
__device__ __forceinline__ void convolve_box(const ConvolveMaps &maps, unsigned to, unsigned full,
                                             int channel, const ConvolvePlace &p, int number,
                                             const ConvolveSpot &at)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(&maps.filters), "r"(channel), "r"(number), "r"(p.row), "r"(full)
                 : "memory");
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to + LEFT),
                 "l"(&maps.x), "r"(channel), "r"(at.x), "r"(at.y), "r"(at.z), "r"((int)p.batch),
                 "r"(full)
                 : "memory");
}

template <int ROWS, int COLUMNS, int STAGES>
__device__ __forceinline__ void convolve_bring(const Convolution &v, int rows,
                                               const ConvolveMaps &maps, const ConvolveItems &items,
                                               const ConvolveRing &ring)
{
    constexpr int LEFT = ROWS * CONVOLVE_LINE, STAGE = LEFT + COLUMNS * CONVOLVE_LINE;
    Stage stage = {0, 1};
#pragma unroll 1
    for (long long item = items.first; item < items.end; item += items.step) {
        const ConvolvePlace p = convolve_place<ROWS, COLUMNS>(v, rows, item);
        const ConvolveSide *s = p.side;
        int tap[3] = {0, 0, 0}, channel = 0;
#pragma unroll 1
        for (int k = convolve_steps(v, p); k > 0; k--) {
            const int number = ((s[0].tap + tap[0] * s[0].taps_step) * v.kernel[1] + s[1].tap +
                                tap[1] * s[1].taps_step) *
                                   v.kernel[2] +
                               s[2].tap + tap[2] * s[2].taps_step;
            const ConvolveSpot at = {s[0].base + p.first.z + tap[0] * s[0].turn,
                                     s[1].base + p.first.y + tap[1] * s[1].turn,
                                     s[2].base + p.first.x + tap[2] * s[2].turn};
            const unsigned full = ring.full + 8 * stage.at;
            barrier_wait(ring.empty + 8 * stage.at, stage.phase);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE)
                         : "memory");
            convolve_box<LEFT>(maps, ring.base + stage.at * STAGE, full, channel, p, number, at);
            stage_advance<STAGES>(stage);
            if ((channel += 32) < 4 * v.quads) continue;
            channel = 0;
            if (++tap[2] < s[2].taps) continue;
            tap[2] = 0;
            if (++tap[1] < s[1].taps) continue;
            tap[1] = 0;
            tap[0]++;
        }
    }
}

template <int ROWS, int COLUMNS, int STAGES, bool OWN>
__device__ __forceinline__ ConvolveRing convolve_begin(const Convolution &v, int rows,
                                                       const ConvolveMaps &maps,
                                                       const ConvolveItems &items)
{
    constexpr int STAGE = (ROWS + COLUMNS) * CONVOLVE_LINE;
    __shared__ unsigned long long barriers[2 * STAGES];
    float *shared = ConvolveWarp<ROWS, COLUMNS>().shared;
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const ConvolveRing ring = {(unsigned)__cvta_generic_to_shared(shared),
                               full,
                               full + 8 * STAGES,
                               threadIdx.x >= CONVOLVE_THREADS,
                               shared + (OWN ? STAGES * STAGE / 4 : 0),
                               {0, 0}};
    if (threadIdx.x < STAGES) {
        barrier_begin(ring.full + 8 * threadIdx.x, 1);
        barrier_begin(ring.empty + 8 * threadIdx.x, CONVOLVE_THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (ring.copies && threadIdx.x == CONVOLVE_THREADS)
        convolve_bring<ROWS, COLUMNS, STAGES>(v, rows, maps, items, ring);
    return ring;
}

template <int ROWS, int COLUMNS, int STAGES, int N>
__device__ __forceinline__ ConvolvePlace convolve_sums(const Convolution &v, int rows,
                                                       const ConvolveMaps &, ConvolveRing &ring,
                                                       long long item, float (&d)[N / 2])
{
    constexpr int LEFT = ROWS * CONVOLVE_LINE, STAGE = LEFT + COLUMNS * CONVOLVE_LINE;
    const ConvolvePlace p = convolve_place<ROWS, COLUMNS>(v, rows, item);
    const int steps = convolve_steps(v, p), down = ROWS == 64 ? 0 : threadIdx.x / 128 * 64,
              right = ROWS == 64 ? threadIdx.x / 128 * N : 0;
    const bool lead = threadIdx.x % 32 == 0;
    int last = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        barrier_wait(ring.full + 8 * ring.stage.at, ring.stage.phase);
        const unsigned from = ring.base + ring.stage.at * STAGE;
        const unsigned long long a = convolve_lines_at(from + down * CONVOLVE_LINE),
                                 b = convolve_lines_at(from + LEFT + right * CONVOLVE_LINE);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) convolve_multiply(d, a + 2 * i, b + 2 * i, k + i > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (k && lead) barrier_arrive(ring.empty + 8 * last);
        last = ring.stage.at;
        stage_advance<STAGES>(ring.stage);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
    if (steps && lead) barrier_arrive(ring.empty + 8 * last);
    return p;
}

//@ halo
// As ConvolveMaps, but what all taps of a tile of 64 filters read comes at once, for Q times four channels:
// HIGH lines of WIDE places. Four channels of a place are 16 bytes, and lie beside those of the next place.
template <int Q, int HIGH, int WIDE> struct ConvolveHalo {
    const CUtensorMap &filters, &x;
};

// inputs: the first of two tiles of the input, whose barriers follow those of the stages of filters.
struct ConvolveHaloRoom {
    unsigned filters, inputs, barriers;
    bool copies;
    float *shared;
    Stage stage, input;
};

template <int STAGES, int Q, int HIGH, int WIDE> struct ConvolveHaloSizes {
    static constexpr int PLANE = HIGH * WIDE * 16, INPUT = (Q * PLANE + 127) / 128 * 128,
                         FILTERS = Q * 64 * 16, FULL_INPUT = 16 * STAGES,
                         EMPTY_INPUT = FULL_INPUT + 16;
};

// Where the taps of a class begin to read, beside their base.
__device__ __forceinline__ int convolve_least(const ConvolveSide &s)
{
    return s.turn < 0 ? s.turn * (s.taps - 1) : 0;
}

template <int STAGES, int Q, int HIGH, int WIDE>
__device__ __forceinline__ void convolve_bring(const Convolution &v, const ConvolvePlace &p,
                                               const ConvolveHalo<Q, HIGH, WIDE> &maps,
                                               ConvolveHaloRoom &room)
{
    using Z = ConvolveHaloSizes<STAGES, Q, HIGH, WIDE>;
    const ConvolveSide *s = p.side;
#pragma unroll 1
    for (int k = 0; k < s[0].taps * ((v.quads + Q - 1) / Q); k++) {
        const int tap = k % s[0].taps, quad = k / s[0].taps * Q;
        unsigned full = room.barriers + Z::FULL_INPUT + 8 * room.input.at;
        barrier_wait(room.barriers + Z::EMPTY_INPUT + 8 * room.input.at, room.input.phase);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                     "r"(Q * Z::PLANE)
                     : "memory");
        asm volatile(
            "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(room.inputs + room.input.at * Z::INPUT),
            "l"(&maps.x), "r"(4 * (s[2].base + p.first.x + convolve_least(s[2]))),
            "r"(s[1].base + p.first.y + convolve_least(s[1])),
            "r"(s[0].base + p.first.z + tap * s[0].turn), "r"(quad), "r"((int)p.batch), "r"(full)
            : "memory");
        stage_advance<2>(room.input);
#pragma unroll 1
        for (int t = 0; t < s[1].taps * s[2].taps; t++) {
            const int number = ((s[0].tap + tap * s[0].taps_step) * v.kernel[1] + s[1].tap +
                                t / s[2].taps * s[1].taps_step) *
                                   v.kernel[2] +
                               s[2].tap + t % s[2].taps * s[2].taps_step;
            full = room.barriers + 8 * room.stage.at;
            barrier_wait(room.barriers + 8 * (STAGES + room.stage.at), room.stage.phase);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(Z::FILTERS)
                         : "memory");
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx"
                         "::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                             room.filters + room.stage.at * Z::FILTERS),
                         "l"(&maps.filters), "r"(4 * p.row), "r"(quad), "r"(number), "r"(full)
                         : "memory");
            stage_advance<STAGES>(room.stage);
        }
    }
}

template <int ROWS, int COLUMNS, int STAGES, bool OWN, int Q, int HIGH, int WIDE>
__device__ __forceinline__ ConvolveHaloRoom convolve_begin(const Convolution &v, int rows,
                                                           const ConvolveHalo<Q, HIGH, WIDE> &maps,
                                                           const ConvolveItems &items)
{
    using Z = ConvolveHaloSizes<STAGES, Q, HIGH, WIDE>;
    __shared__ unsigned long long barriers[2 * STAGES + 4];
    float *shared = ConvolveWarp<ROWS, COLUMNS>().shared;
    const unsigned inputs = (unsigned)__cvta_generic_to_shared(shared),
                   at = (unsigned)__cvta_generic_to_shared(barriers);
    ConvolveHaloRoom room = {inputs + 2 * Z::INPUT,
                             inputs,
                             at,
                             threadIdx.x >= CONVOLVE_THREADS,
                             shared + (OWN ? (2 * Z::INPUT + STAGES * Z::FILTERS) / 4 : 0),
                             {0, 0},
                             {0, 0}};
    if (threadIdx.x < 2 * STAGES + 4) {
        const int i = threadIdx.x, fills = i < STAGES || i == 2 * STAGES || i == 2 * STAGES + 1;
        barrier_begin(at + 8 * i, fills ? 1 : CONVOLVE_THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == CONVOLVE_THREADS) {
        room.stage.phase = room.input.phase = 1;
#pragma unroll 1
        for (long long item = items.first; item < items.end; item += items.step)
            convolve_bring<STAGES>(v, convolve_place<ROWS, COLUMNS>(v, rows, item), maps, room);
    }
    return room;
}

// Lines of 16 bytes, of which 8 follow one another: bytes between the two of 8 terms, and between eights.
__device__ __forceinline__ unsigned long long convolve_pieces_at(unsigned shared, int terms,
                                                                 int eights)
{
    return (unsigned long long)((shared & 0x3ffff) >> 4) | (unsigned long long)(terms >> 4) << 16 |
           (unsigned long long)(eights >> 4) << 32;
}

template <int ROWS, int COLUMNS, int STAGES, int N, int Q, int HIGH, int WIDE>
__device__ __forceinline__ ConvolvePlace convolve_sums(const Convolution &v, int rows,
                                                       const ConvolveHalo<Q, HIGH, WIDE> &,
                                                       ConvolveHaloRoom &room, long long item,
                                                       float (&d)[N / 2])
{
    using Z = ConvolveHaloSizes<STAGES, Q, HIGH, WIDE>;
    const ConvolvePlace p = convolve_place<ROWS, COLUMNS>(v, rows, item);
    const ConvolveSide *s = p.side;
    const int chunks = s[0].taps * ((v.quads + Q - 1) / Q), taps = s[1].taps * s[2].taps,
              right = threadIdx.x / 128 * (N / 8 * WIDE * 16);
    const bool lead = threadIdx.x % 32 == 0;
    int last = -1, before = -1;
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
#pragma unroll 1
    for (int k = 0; k < (taps > 0 ? chunks : 0); k++) {
        barrier_wait(room.barriers + Z::FULL_INPUT + 8 * room.input.at, room.input.phase);
        const unsigned from = room.inputs + room.input.at * Z::INPUT + right;
        int y = -convolve_least(s[1]), x = -convolve_least(s[2]);
#pragma unroll 1
        for (int t = 0; t < taps; t++) {
            barrier_wait(room.barriers + 8 * room.stage.at, room.stage.phase);
            const unsigned long long a = convolve_pieces_at(
                                         room.filters + room.stage.at * Z::FILTERS, 1024, 128),
                                     b = convolve_pieces_at(from + (y * WIDE + x) * 16, Z::PLANE,
                                                            WIDE * 16);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < Q / 2; i++)
                convolve_multiply(d, a + i * 128, b + i * (Z::PLANE / 8), k + t + i > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (last >= 0 && lead) barrier_arrive(room.barriers + 8 * (STAGES + last));
            if (before >= 0 && lead) barrier_arrive(room.barriers + Z::EMPTY_INPUT + 8 * before);
            last = room.stage.at, before = -1;
            stage_advance<STAGES>(room.stage);
            x += s[2].turn;
            if ((t + 1) % s[2].taps == 0) x = -convolve_least(s[2]), y += s[1].turn;
        }
        before = room.input.at;
        stage_advance<2>(room.input);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
    if (last >= 0 && lead) barrier_arrive(room.barriers + 8 * (STAGES + last));
    if (before >= 0 && lead) barrier_arrive(room.barriers + Z::EMPTY_INPUT + 8 * before);
    return p;
}

//@ folds
// An element of a sum, which `value` makes; `none`, which changes no fold, where there is none. Where an
// output lies is computed only if `value` needs it.
template <typename V>
__device__ __forceinline__ float convolve_value(const Convolution &v, const ConvolvePlace &p,
                                                int rows, int row, int n, float sum, float none,
                                                V value)
{
    const bool there = row < rows && convolve_inside(v, p, n);
    return there ? value(p.batch, row, convolve_output(v, p, n), sum) : none;
}

// Folds the outputs of an image, for each filter: a block has ROWS filters, and each `parts`-th tile of them.
template <int ROWS, int COLUMNS, int STAGES, typename S, typename F, typename V>
__device__ __forceinline__ void convolve_fold_outputs(const Convolution v, int rows, const S source,
                                                      int parts, float none, F fold, V value,
                                                      float *out)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N;
    const int down = (rows + ROWS - 1) / ROWS, tile = blockIdx.x % down,
              part = blockIdx.x / down % parts, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const long long batch = blockIdx.x / down / parts;
    const ConvolveItems items = convolve_shared<COLUMNS>(v, down, parts);
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, true>(v, rows, source, items);
    if (room.copies) return;
    float of[2] = {none, none};
#pragma unroll 1
    for (long long item = items.first; item < items.end; item += items.step) {
        float d[N / 2];
        const ConvolvePlace p =
            convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            of[i / 2 % 2] =
                fold(of[i / 2 % 2],
                     convolve_value(v, p, rows, p.row + warp.down + g + i / 2 % 2 * 8,
                                    warp.right + i / 4 * 8 + 2 * t + i % 2, d[i], none, value));
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        of[r] = fold(of[r], __shfl_xor_sync(~0u, of[r], 1));
        of[r] = fold(of[r], __shfl_xor_sync(~0u, of[r], 2));
    }
    if (ROWS == 64) { // both groups have the same filters
        if (threadIdx.x >= 128 && !t)
            for (int r = 0; r < 2; r++) room.shared[warp.down + g + 8 * r] = of[r];
        convolve_sync();
        for (int r = 0; r < 2; r++) of[r] = fold(of[r], room.shared[warp.down + g + 8 * r]);
        if (threadIdx.x >= 128) return;
    }
    for (int r = 0; r < 2 && !t; r++) {
        const int row = tile * ROWS + warp.down + g + 8 * r;
        if (row < rows) out[(batch * rows + row) * parts + part] = of[r];
    }
}

// Folds the filters, for each output: a block has COLUMNS outputs, and all tiles of filters.
template <int ROWS, int COLUMNS, int STAGES, typename S, typename F, typename V>
__device__ __forceinline__ void convolve_fold_filters(const Convolution v, int rows, const S source,
                                                      float none, F fold, V value, float *out)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N,
                  WARPS = ROWS == 64 ? 4 : 8; // that have an output's sums
    const int down = (rows + ROWS - 1) / ROWS, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4,
              c = threadIdx.x;
    const ConvolveItems items = {(long long)blockIdx.x * down, (blockIdx.x + 1ll) * down, 1};
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, true>(v, rows, source, items);
    if (room.copies) return;
    float total = none;
    ConvolvePlace p;
#pragma unroll 1
    for (long long item = items.first; item < items.end; item++) {
        float d[N / 2];
        p = convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const int at = i / 2 * 4 + i % 2, n = i / 2 * 8 + 2 * t + i % 2,
                      column = warp.right + n, row = p.row + warp.down + g;
            float s = fold(convolve_value(v, p, rows, row, column, d[at], none, value),
                           convolve_value(v, p, rows, row + 8, column, d[at + 2], none, value));
#pragma unroll
            for (int m = 4; m < 32; m *= 2) s = fold(s, __shfl_xor_sync(~0u, s, m));
            if (!g) room.shared[threadIdx.x / 32 * N + n] = s;
        }
        convolve_sync();
        for (int w = 0; w < WARPS && c < COLUMNS; w++)
            total = fold(total, room.shared[(c / N * 4 + w) * N + c % N]);
        convolve_sync();
    }
    const int at = c < COLUMNS ? convolve_output(v, p, c) : -1;
    if (at >= 0) out[p.batch * v.out[0] * v.out[1] * v.out[2] + at] = total;
}

//@ windows
// Folds the windows of a pool in 64 outputs of sixteen filters that a warp has staged. cx, cy: how many of
// these lie side by side along the last dimensions of the box.
template <int WZ, int WY, int WX, typename F, typename V, typename A, typename O>
__device__ __forceinline__ void convolve_windows(const Convolution &v, const ConvolvePlace &p,
                                                 const float *stage, int rows, int row, int column,
                                                 const ConvolveSpot &pooled, float none, F fold,
                                                 V value, A after, O *out)
{
    const int cx = min(v.box[2], 64), cy = min(v.box[1], 64 / cx), nx = cx / WX, ny = cy / WY,
              each = 64 / (WZ * WY * WX);
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < 16 * each; i += 32) {
        const int r = i / each, w = i % each,
                  first = (w / (nx * ny) * WZ * cy + w / nx % ny * WY) * cx + w % nx * WX;
        const ConvolveSpot at = convolve_spot(v, p, column + first),
                           to = {at.z / WZ, at.y / WY, at.x / WX};
        if (row + r >= rows || to.z >= pooled.z || to.y >= pooled.y || to.x >= pooled.x) continue;
        float of = none;
#pragma unroll
        for (int z = 0; z < WZ; z++)
#pragma unroll
            for (int y = 0; y < WY; y++)
#pragma unroll
                for (int x = 0; x < WX; x++)
                    of = fold(of,
                              value(p.batch, row + r,
                                    ((at.z + z) * v.out[1] + at.y + y) * v.out[2] + at.x + x,
                                    stage[convolve_staged<0>(r, first + (z * cy + y) * cx + x)]));
        const long long place = ((long long)to.z * pooled.y + to.y) * pooled.x + to.x;
        out[(p.batch * rows + row + r) * pooled.z * pooled.y * pooled.x + place] =
            after(p.batch, row + r, place, of);
    }
}

// The same of all outputs of a block, by way of `stage`, which has room for 64 of them. pooled: how many
// windows there are along each dimension; the box has them whole.
template <int N, int WZ, int WY, int WX, typename F, typename V, typename A, typename O>
__device__ __forceinline__ void convolve_pool(const Convolution &v, const ConvolvePlace &p,
                                              const float (&d)[N / 2], float *stage, int rows,
                                              int row, int column, const ConvolveSpot &pooled,
                                              float none, F fold, V value, A after, O *out)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    convolve_sync();
#pragma unroll
    for (int c = 0; c < N / 64; c++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int i = 8 * c + j, at = 8 * j + 2 * t;
            *(float2 *)(stage + convolve_staged<0>(g, at)) = make_float2(d[4 * i], d[4 * i + 1]);
            *(float2 *)(stage + convolve_staged<0>(g + 8, at)) =
                make_float2(d[4 * i + 2], d[4 * i + 3]);
        }
        __syncwarp();
        convolve_windows<WZ, WY, WX>(v, p, stage, rows, row, column + c * 64, pooled, none, fold,
                                     value, after, out);
        __syncwarp();
    }
}

template <int ROWS, int COLUMNS, int STAGES, int WZ, int WY, int WX, typename S, typename F,
          typename V, typename A, typename O>
__device__ __forceinline__ void convolve_fold_windows(const Convolution v, int rows, const S source,
                                                      const ConvolveSpot pooled, float none, F fold,
                                                      V value, A after, O *out)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N;
    const long long item = blockIdx.x;
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, false>(v, rows, source, {item, item + 1, 1});
    if (room.copies) return;
    float d[N / 2];
    const ConvolvePlace p = convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
    convolve_pool<N, WZ, WY, WX>(v, p, d, room.shared + threadIdx.x / 32 * (16 * 64), rows,
                                 p.row + warp.down, warp.right, pooled, none, fold, value, after,
                                 out);
}

// Windows that have an output of each class of a transposed convolution, at one place: a block folds these,
// one class after another.
template <int ROWS, int COLUMNS, int STAGES, typename S, typename F, typename V, typename A,
          typename O>
__device__ __forceinline__ void convolve_fold_classes(const Convolution v, int rows, const S source,
                                                      const ConvolveSpot pooled, float none, F fold,
                                                      V value, A after, O *out)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N;
    const int down = (rows + ROWS - 1) / ROWS, each = convolve_classes(v) * down;
    const long long first = (long long)(blockIdx.x / down) * each + blockIdx.x % down;
    const ConvolveItems items = {first, first + each, down};
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, false>(v, rows, source, items);
    if (room.copies) return;
    float of[N / 2];
    ConvolvePlace p;
#pragma unroll
    for (int i = 0; i < N / 2; i++) of[i] = none;
#pragma unroll 1
    for (long long item = items.first; item < items.end; item += items.step) {
        float d[N / 2];
        p = convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const int n = warp.right + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2,
                      row = p.row + warp.down + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
            if (row < rows && convolve_inside(v, p, n))
                of[i] = fold(of[i], value(p.batch, row, convolve_output(v, p, n), d[i]));
        }
    }
    convolve_pool<N, 1, 1, 1>(
        v, p, of, room.shared + threadIdx.x / 32 * (16 * 64), rows, p.row + warp.down, warp.right,
        pooled, none, fold, [](long long, int, int, float x) { return x; }, after, out);
}

//@ statistics
// How many elements there are, their mean, and the sum of their squared distances from it.
struct ConvolveStatistics {
    float count, mean, spread;

    __device__ __forceinline__ void add(const ConvolveStatistics &o)
    {
        const float all = count + o.count, share = all > 0 ? o.count / all : 0.f,
                    apart = o.mean - mean;
        spread += o.spread + apart * apart * count * share;
        mean += apart * share;
        count = all;
    }

    __device__ __forceinline__ ConvolveStatistics other(int lanes) const
    {
        return {__shfl_xor_sync(~0u, count, lanes), __shfl_xor_sync(~0u, mean, lanes),
                __shfl_xor_sync(~0u, spread, lanes)};
    }
};

// Where the parts of each filter of an image lie.
struct ConvolveParts {
    float *spread, *mean, *count;
};

// Whether all outputs of an item are there.
template <int COLUMNS>
__device__ __forceinline__ bool convolve_whole(const Convolution &v, const ConvolvePlace &p)
{
    return convolve_inside(v, p, COLUMNS - 1);
}

// Of what `value` makes of the sums of row r of a thread's two, of an item. Sums beyond the outputs are taken
// for the first one's, and left out.
template <int N, int COLUMNS, typename V>
__device__ __forceinline__ ConvolveStatistics convolve_measure(const Convolution &v,
                                                               const ConvolvePlace &p,
                                                               const float (&d)[N / 2], int row,
                                                               int column, int r, V value)
{
    ConvolveStatistics s = {0, 0, 0};
    if (!convolve_inside(v, p, 0)) return s;
    const auto measure = [&](bool whole) {
        float x[N / 4];
        bool there[N / 4];
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const int n = column + i / 2 * 8 + i % 2;
            there[i] = whole || convolve_inside(v, p, n);
            x[i] = value(p.batch, row, convolve_output(v, p, there[i] ? n : 0),
                         d[i / 2 * 4 + 2 * r + i % 2]);
            s.mean += there[i] ? x[i] : 0.f;
            s.count += there[i] ? 1.f : 0.f;
        }
        s.mean = s.count > 0 ? s.mean / s.count : 0.f;
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const float apart = there[i] ? x[i] - s.mean : 0.f;
            s.spread += apart * apart;
        }
    };
    if (convolve_whole<COLUMNS>(v, p))
        measure(true);
    else
        measure(false);
    return s;
}

// Stores the sums by `each`, and makes statistics of the outputs of an image, for each filter: a block has
// ROWS filters, and each `parts`-th tile of the outputs.
template <int ROWS, int COLUMNS, int STAGES, typename S, typename V, typename E>
__device__ __forceinline__ void convolve_statistics(const Convolution v, int rows, const S source,
                                                    int parts, V value, const ConvolveParts to,
                                                    E each)
{
    const ConvolveWarp<ROWS, COLUMNS> warp;
    constexpr int N = ConvolveWarp<ROWS, COLUMNS>::N;
    const int down = (rows + ROWS - 1) / ROWS, tile = blockIdx.x % down,
              part = blockIdx.x / down % parts, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const long long batch = blockIdx.x / down / parts;
    const ConvolveItems items = convolve_shared<COLUMNS>(v, down, parts);
    auto room = convolve_begin<ROWS, COLUMNS, STAGES, true>(v, rows, source, items);
    if (room.copies) return;
    ConvolveStatistics of[2] = {{0, 0, 0}, {0, 0, 0}};
#pragma unroll 1
    for (long long item = items.first; item < items.end; item += items.step) {
        float d[N / 2];
        const ConvolvePlace p =
            convolve_sums<ROWS, COLUMNS, STAGES, N>(v, rows, source, room, item, d);
        convolve_results<N>(v, d, room.shared + threadIdx.x / 32 * (16 * 64), p, p.row + warp.down,
                            warp.right, each);
#pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.row + warp.down + g + 8 * r < rows)
                of[r].add(convolve_measure<N, COLUMNS>(v, p, d, p.row + warp.down + g + 8 * r,
                                                       warp.right + 2 * t, r, value));
        convolve_sync();
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        of[r].add(of[r].other(1));
        of[r].add(of[r].other(2));
    }
    ConvolveStatistics *shared = (ConvolveStatistics *)room.shared + warp.down + g;
    if (ROWS == 64) { // both groups have the same filters
        if (threadIdx.x >= 128 && !t)
            for (int r = 0; r < 2; r++) shared[8 * r] = of[r];
        convolve_sync();
        if (threadIdx.x >= 128) return;
        for (int r = 0; r < 2; r++) of[r].add(shared[8 * r]);
    }
    for (int r = 0; r < 2 && !t; r++) {
        const int row = tile * ROWS + warp.down + g + 8 * r;
        if (row >= rows) continue;
        const long long at = (batch * rows + row) * parts + part;
        to.spread[at] = of[r].spread, to.mean[at] = of[r].mean, to.count[at] = of[r].count;
    }
}
