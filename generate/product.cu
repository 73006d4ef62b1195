// Products of float32 matrices by Hopper's tensor cores, in generated kernels. A line of a factor is scaled
// by a power of two, and each element is the sum of two halves, of 11 bits each: three products of halves
// make one of float32's precision. Half types need no halves.
// Over 800 lines: five loops, of which a generated source takes the parts that it needs.

//@ factor
// One factor of a product: element k of a line is p[line * step + k] if K, else p[line + k * step].
struct Factor {
    const float *p;
    long long lines, depth, step;
};

// Which terms of a sum a block adds up: those of piece number `at` of so many.
struct Piece {
    int at, of;
};

// From the first one to before the end, of n.
struct Range {
    long long first, end;
};

__device__ __forceinline__ Range range_of(const Piece &p, long long n)
{
    const long long each = (n + p.of - 1) / p.of, first = min(n, p.at * each);
    return {first, min(n, first + each)};
}

//@ halves
// One in FAR elements that are no zeros may be so far below its line's largest one that the halves lose bits
// of it.
enum { FAR = 32 };

// The number by which a line is multiplied whose largest element has these bits without the sign: the result
// is below 2^15.
__device__ __forceinline__ float line_scale(unsigned most)
{
    const int exponent = 268 - (int)(most >> 23);
    return __uint_as_float((unsigned)(exponent > 254 ? 254 : exponent < 1 ? 1 : exponent) << 23);
}

// What a line has to be multiplied by to be itself again, as two numbers, whose products with those of
// another line are finite. Below zero: halves cannot tell it.
__device__ __forceinline__ float2 line_factor(unsigned most, float scale, long long lost)
{
    if (most >= 0x7f800000u || lost > 0) return make_float2(-1, -1);
    const int exponent = 127 - (int)(__float_as_uint(scale) >> 23), half = exponent >> 1;
    return make_float2(__uint_as_float((unsigned)(half + 127) << 23),
                       __uint_as_float((unsigned)(exponent - half + 127) << 23));
}

// lost: FAR for each element that loses bits, less one for each that is no zero.
__device__ __forceinline__ void halves(float x, float scale, half &first, half &second,
                                       long long &lost)
{
    const float f = x * scale;
    first = __float2half_rn(f);
    const float rest = f - __half2float(first);
    second = __float2half_rn(rest);
    const bool loses =
        fabsf(rest - __half2float(second)) > 0x1p-21f * fabsf(f) || (f == 0 && x != 0);
    lost += (loses ? FAR : 0) - (x != 0);
}

__device__ __forceinline__ unsigned magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

//@ product
template <bool K>
__device__ __forceinline__ float element(const Factor &f, long long line, long long k)
{
    return line < f.lines && k < f.depth ? f.p[K ? line * f.step + k : line + k * f.step] : 0.f;
}

// Tiles of TERMS elements of a line lie in memory as their first halves and then the second ones; elements
// beyond the line are zeros.
// Sums of at most SHORT terms are made in float32, since few terms do not even out what the halves round.
enum { TERMS = 64, SHORT = 48 };

__device__ __forceinline__ long long tiles_of(const Factor &f)
{
    return (f.depth + TERMS - 1) / TERMS;
}

// The piece of a factor, which has whole tiles. Each line of it has a scale of its own.
template <bool K> __device__ __forceinline__ Factor piece_of(const Factor &f, const Piece &p)
{
    const Range tiles = range_of(p, tiles_of(f));
    const long long first = tiles.first * TERMS, end = min(f.depth, tiles.end * TERMS);
    return {f.p + first * (K ? 1 : f.step), f.lines, max(0LL, end - first), f.step};
}

struct alignas(8) Halves {
    half v[4];
};

// The halves of a line's piece by T threads, whose elements lie side by side; each keeps 4 * KEEP of them.
template <int T, int KEEP>
__device__ __forceinline__ void split_along(const Factor whole, const Piece piece, long long line,
                                            half *to, float2 *factors)
{
    const Factor f = piece_of<true>(whole, piece);
    if (f.depth == 0) return;
    __shared__ unsigned shared[32];
    __shared__ long long losses[32];
    const int lane = threadIdx.x % T;
    const long long tiles = tiles_of(whole), begin = range_of(piece, tiles).first,
                    end = tiles_of(f) * TERMS;
    const bool inside = line < f.lines,
               quads = ((f.step | f.depth | (long long)((size_t)f.p / 4)) & 3) == 0;
    const float *from = f.p + (inside ? line : 0) * f.step;
    float4 keep[KEEP];
    unsigned most = 0;
    long long lost = 0;
    const auto load = [&](long long k) {
        if (quads) return k < f.depth ? *(const float4 *)(from + k) : make_float4(0, 0, 0, 0);
        return make_float4(k < f.depth ? from[k] : 0.f, k + 1 < f.depth ? from[k + 1] : 0.f,
                           k + 2 < f.depth ? from[k + 2] : 0.f,
                           k + 3 < f.depth ? from[k + 3] : 0.f);
    };
    const auto see = [&](float4 x) {
        most = max(max(most, magnitude(x.x)),
                   max(magnitude(x.y), max(magnitude(x.z), magnitude(x.w))));
    };
#pragma unroll
    for (int i = 0; i < KEEP; i++) see(keep[i] = load((i * T + lane) * 4));
    for (long long k = (KEEP * T + lane) * 4; k < f.depth; k += T * 4) see(load(k));
#pragma unroll
    for (int d = 16; d; d /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, d));
    if (T > 32) {
        if (lane % 32 == 0) shared[lane / 32] = most;
        __syncthreads();
#pragma unroll
        for (int w = 0; w < T / 32; w++) most = max(most, shared[w]);
    }
    const float scale = line_scale(most);
    const auto put = [&](float4 x, long long k) {
        Halves first, second;
        halves(x.x, scale, first.v[0], second.v[0], lost);
        halves(x.y, scale, first.v[1], second.v[1], lost);
        halves(x.z, scale, first.v[2], second.v[2], lost);
        halves(x.w, scale, first.v[3], second.v[3], lost);
        half *at = to + (line * tiles + begin + k / TERMS) * (2 * TERMS) + k % TERMS;
        *(Halves *)at = first;
        *(Halves *)(at + TERMS) = second;
    };
#pragma unroll
    for (int i = 0; i < KEEP; i++) {
        const long long k = (i * T + lane) * 4;
        if (inside && k < end) put(keep[i], k);
    }
    for (long long k = (KEEP * T + lane) * 4; inside && k < end; k += T * 4) put(load(k), k);
#pragma unroll
    for (int d = 16; d; d /= 2) lost += __shfl_xor_sync(0xffffffffu, lost, d);
    if (T > 32) {
        if (lane % 32 == 0) losses[lane / 32] = lost;
        __syncthreads();
        lost = 0;
#pragma unroll
        for (int w = 0; w < T / 32; w++) lost += losses[w];
    }
    if (inside && lane == 0) factors[line * piece.of + piece.at] = line_factor(most, scale, lost);
}

// The halves of a piece of 32 lines, which lie side by side, by 32 warps.
__device__ __forceinline__ void split_across(const Factor whole, const Piece piece, long long line,
                                             half *to, float2 *factors)
{
    const Factor f = piece_of<false>(whole, piece);
    if (f.depth == 0) return;
    __shared__ float tile[32][TERMS + 1];
    __shared__ unsigned largest[32][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long tiles = tiles_of(whole), begin = range_of(piece, tiles).first, n = tiles_of(f);
    unsigned most = 0;
    long long lost = 0;
#pragma unroll 4
    for (long long k = warp; k < f.depth; k += 32)
        most = max(most, magnitude(element<false>(f, line + lane, k)));
    largest[lane][warp] = most;
    __syncthreads();
    most = largest[warp][lane];
#pragma unroll
    for (int d = 16; d; d /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, d));
    const float scale = line_scale(most);
    for (long long t = 0; t < n; t++) {
#pragma unroll
        for (int k = 0; k < TERMS; k += 32)
            tile[lane][k + warp] = element<false>(f, line + lane, t * TERMS + k + warp);
        __syncthreads();
        half2 first, second;
        halves(tile[warp][2 * lane], scale, first.x, second.x, lost);
        halves(tile[warp][2 * lane + 1], scale, first.y, second.y, lost);
        half2 *at = (half2 *)(to + ((line + warp) * tiles + begin + t) * (2 * TERMS)) + lane;
        if (line + warp < f.lines) {
            at[0] = first;
            at[TERMS / 2] = second;
        }
        __syncthreads();
    }
#pragma unroll
    for (int d = 16; d; d /= 2) lost += __shfl_xor_sync(0xffffffffu, lost, d);
    if (lane == 0 && line + warp < f.lines)
        factors[(line + warp) * piece.of + piece.at] = line_factor(most, scale, lost);
}

// A tile of SIDE x SIDE sums is made by two warp groups, from STAGES tiles of both factors in shared memory.
enum { SIDE = 128, STAGES = 3, PART = SIDE * TERMS * 2, STAGE = 4 * PART, THREADS = 256 };

// d += a * b, or d = a * b, for 64 lines of a and 128 of b in shared memory, and 16 terms.
__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b,
                                         int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, p, 1, 1, 0, 0;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(add));
}

// Lines of 128 bytes, of which the 16-byte pieces lie at their numbers xor the line's.
__device__ __forceinline__ unsigned long long lines_at(unsigned shared)
{
    return (unsigned long long)((shared & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void fetch(unsigned to, const half *from, long long tiles,
                                      long long line, long long lines, long long t)
{
#pragma unroll
    for (int j = 0; j < SIDE * 16 / THREADS; j++) {
        const int i = j * THREADS + threadIdx.x, l = i / 16, part = i / 8 % 2, x = i % 8;
        const int bytes = line + l < lines ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         to + part * PART + l * 128 + ((x ^ (l & 7)) << 4)),
                     "l"(from + ((line + l) * tiles + t) * (2 * TERMS) + part * TERMS + x * 8),
                     "r"(bytes));
    }
}

// The columns from row + least to row + most.
struct Band {
    long long least, most;
};

// Where sums are needed, and where factors are not zero: k beside row, and column beside k.
struct Bands {
    Band sums, left, right;
};

// Tiles of terms, from the first one to before the end, and whether any sum is needed.
struct Terms {
    long long first, end;
    bool needed;
};

__device__ __forceinline__ Terms terms_of(const Bands &b, long long top, long long left,
                                          long long depth)
{
    const long long down = top + SIDE - 1, across = left + SIDE - 1;
    const long long first = max(0LL, max(top + b.left.least, left - b.right.most)),
                    end = min(depth, min(down + b.left.most, across - b.right.least) + 1);
    return {first / TERMS, end > first ? (end + TERMS - 1) / TERMS : first / TERMS,
            across - top >= b.sums.least && left - down <= b.sums.most};
}

// Those of each tile of terms are made apart and added in float32, since a tensor core cuts its sums off.
__device__ __forceinline__ void add_halves(float (&sum)[64], const half *a, const half *b,
                                           const Factor &fa, const Factor &fb, long long top,
                                           long long left, const Terms own)
{
    extern __shared__ unsigned char raw[];
    const unsigned base = ((unsigned)__cvta_generic_to_shared(raw) + 1023) & ~1023u;
    const long long tiles = tiles_of(fa);
    float part[64];
#pragma unroll
    for (int i = 0; i < 64; i++) part[i] = 0;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        const long long t = own.first + s;
        if (t < own.end) {
            fetch(base + s * STAGE, a, tiles, top, fa.lines, t);
            fetch(base + s * STAGE + 2 * PART, b, tiles, left, fb.lines, t);
        }
        asm volatile("cp.async.commit_group;");
    }
    for (long long t = own.first; t < own.end; t++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const long long next = t + STAGES - 1;
        if (next < own.end) {
            const unsigned to = base + (unsigned)((next - own.first) % STAGES) * STAGE;
            fetch(to, a, tiles, top, fa.lines, next);
            fetch(to + 2 * PART, b, tiles, left, fb.lines, next);
        }
        asm volatile("cp.async.commit_group;");
        const unsigned from = base + (unsigned)((t - own.first) % STAGES) * STAGE,
                       half_a = from + threadIdx.x / 128 * (PART / 2);
        const unsigned long long a0 = lines_at(half_a), a1 = lines_at(half_a + PART),
                                 b0 = lines_at(from + 2 * PART), b1 = lines_at(from + 3 * PART);
#pragma unroll
        for (int i = 0; i < 64; i++) asm volatile("" : "+f"(part[i])::"memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < TERMS / 16; k++) {
            multiply(part, a1 + 2 * k, b0 + 2 * k, k > 0);
            multiply(part, a0 + 2 * k, b1 + 2 * k, 1);
            multiply(part, a0 + 2 * k, b0 + 2 * k, 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 64; i++) asm volatile("" : "+f"(part[i])::"memory");
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] += part[i];
    }
}

// The same in float32, from the factors themselves.
template <bool AK, bool BK>
__device__ __forceinline__ void add_exactly(float (&sum)[64], const Factor &a, const Factor &b,
                                            long long top, long long left)
{
    enum { STEP = 16, PITCH = SIDE + 4 };
    extern __shared__ unsigned char raw[];
    float(*as)[PITCH] = (float(*)[PITCH])raw, (*bs)[PITCH] = as + STEP;
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const int terms = top + row / 16 * 16 < a.lines ? STEP : 0; // of a warp without rows: none
    const int columns = b.lines - left < SIDE ? (int)(b.lines - left) : SIDE;
    for (long long k = 0; k < a.depth; k += STEP) {
#pragma unroll 2
        for (int i = threadIdx.x; i < SIDE * STEP; i += THREADS) {
            const int al = AK ? i / STEP : i % SIDE, ak = AK ? i % STEP : i / SIDE,
                      bl = BK ? i / STEP : i % SIDE, bk = BK ? i % STEP : i / SIDE;
            as[ak][al] = element<AK>(a, top + al, k + ak);
            bs[bk][bl] = element<BK>(b, left + bl, k + bk);
        }
        __syncthreads();
#pragma unroll 1
        for (int e = 0; e < terms; e++) {
            const float x0 = as[e][row], x1 = as[e][row + 8];
#pragma unroll
            for (int j = 0; j < 16; j++) {
                if (j / 4 * 32 >= columns) break;
                const float2 y = *(const float2 *)&bs[e][8 * j + column];
                sum[4 * j] += x0 * y.x, sum[4 * j + 1] += x0 * y.y;
                sum[4 * j + 2] += x1 * y.x, sum[4 * j + 3] += x1 * y.y;
            }
        }
        __syncthreads();
    }
}

struct Split {
    const half *parts;
    const float2 *factors;
};

// The n-th tile of sums. Neighbours share factors in L2.
struct TilePlace {
    long long top, left;
};

__device__ __forceinline__ TilePlace tile_place(const Factor &a, const Factor &b, long long n)
{
    const long long RASTER = 8, across = (b.lines + SIDE - 1) / SIDE,
                    down = (a.lines + SIDE - 1) / SIDE;
    const long long above = n / (RASTER * across) * RASTER,
                    high = down - above < RASTER ? down - above : RASTER;
    const long long inside = n - above * across;
    return {(above + inside % high) * SIDE, inside / high * SIDE};
}

// The sums of a block's tile, one row of a warp's sixteen after another, by way of shared memory, where no
// stage is read any more: a lane has four neighbouring columns. What is made of sums would be written 64
// times if it took them from registers, and a block would wait for these instructions at each tile.
template <typename E>
__device__ __forceinline__ void product_rows(const float (&sum)[64], const TilePlace &place, E each)
{
    enum { PITCH = SIDE + 8 };
    extern __shared__ unsigned char raw[];
    const unsigned begin = (unsigned)__cvta_generic_to_shared(raw), base = (begin + 1023) & ~1023u;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *stage = (float *)(raw + (base - begin)) + warp * (16 * PITCH),
          *to = stage + lane / 4 * PITCH + lane % 4 * 2;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 16; j++) {
        *(float2 *)(to + 8 * j) = make_float2(sum[4 * j], sum[4 * j + 1]);
        *(float2 *)(to + 8 * PITCH + 8 * j) = make_float2(sum[4 * j + 2], sum[4 * j + 3]);
    }
    __syncwarp();
#pragma unroll 4
    for (int r = 0; r < 16; r++)
        each(place.top + warp * 16 + r, place.left + 4 * lane,
             *(const float4 *)(stage + r * PITCH + 4 * lane));
}

// The sums over k of a[row][k] * b[column][k] for one tile and the piece's terms; each gets those of four
// neighbouring columns.
// Zeros of a factor are left out where the other one has numbers alone: an infinity makes a tile exact.
template <bool AK, bool BK, typename E>
__device__ __forceinline__ void product(const Factor a, const Factor b, const Split as,
                                        const Split bs, const Bands &bands, const Piece piece,
                                        long long tile, E each)
{
    const TilePlace place = tile_place(a, b, tile);
    const int at = threadIdx.x % SIDE, is_a = threadIdx.x < SIDE;
    const long long line = (is_a ? place.top : place.left) + at;
    float sum[64];
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0;
    Terms own = terms_of(bands, place.top, place.left, a.depth);
    const Range tiles = range_of(piece, tiles_of(a));
    own.first = max(own.first, tiles.first), own.end = min(own.end, tiles.end);
    own.needed &= tiles.first < tiles.end;
    const int exactly = own.needed && line < (is_a ? a.lines : b.lines) &&
                        (is_a ? as : bs).factors[line * piece.of + piece.at].x < 0;
    const int exact = !own.needed || __syncthreads_or(exactly || a.depth <= SHORT);
    if (own.needed && exact)
        add_exactly<AK, BK>(sum, piece_of<AK>(a, piece), piece_of<BK>(b, piece), place.top,
                            place.left);
    else if (own.needed)
        add_halves(sum, as.parts, bs.parts, a, b, place.top, place.left, own);
    const float2 none = make_float2(1, 1);
    float2 across[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const long long c = place.left + threadIdx.x % 32 * 4 + i;
        across[i] = !exact && c < b.lines ? bs.factors[c * piece.of + piece.at] : none;
    }
    product_rows(sum, place, [&](long long row, long long column, float4 s) {
        const float2 r = !exact && row < a.lines ? as.factors[row * piece.of + piece.at] : none;
        each(row, column,
             make_float4(s.x * (r.x * across[0].x) * (r.y * across[0].y),
                         s.y * (r.x * across[1].x) * (r.y * across[1].y),
                         s.z * (r.x * across[2].x) * (r.y * across[2].y),
                         s.w * (r.x * across[3].x) * (r.y * across[3].y)));
    });
}

//@ direct
// Products whose factors lie in memory as they are: a block copies terms of its lines, and splits them while
// the tensor cores have those before. Each line of such a tile of terms has a scale of its own.
enum {
    DIRECT_TERMS = 32,
    DIRECT_STAGES = 4,
    DIRECT_LINE = 2 * 2 * DIRECT_TERMS, // bytes: the first halves, then the second ones
    DIRECT_FLOATS = SIDE * DIRECT_TERMS,
    DIRECT_HALVES = SIDE * DIRECT_LINE
};

// Where element k of a line lies in a tile: a line's 16-byte pieces at their numbers xor the line's, or lines
// side by side.
template <bool K> __device__ __forceinline__ int direct_place(int line, int k)
{
    return K ? line * DIRECT_TERMS + ((k / 4 ^ (line & 7)) << 2) + k % 4 : k * SIDE + line;
}

// Begins to copy the terms from k on of SIDE lines, N elements at once.
template <bool K, int N>
__device__ __forceinline__ void direct_copy(float *to, const Factor &f, long long line, long long k)
{
    constexpr int SPAN = (K ? DIRECT_TERMS : SIDE) / N, DOWN = THREADS / SPAN;
    const int inner = threadIdx.x % SPAN * N, outer = threadIdx.x / SPAN, l = K ? outer : inner,
              e = K ? inner : outer;
    const long long lines = f.lines - line - l, terms = f.depth - k - e, own = K ? terms : lines,
                    rows = K ? lines : terms;
    const int bytes = own <= 0 ? 0 : own < N ? 4 * (int)own : 4 * N;
    const float *from = f.p + (K ? (line + l) * f.step + k + e : line + l + (k + e) * f.step);
    const unsigned at = (unsigned)__cvta_generic_to_shared(to + direct_place<K>(l, e));
#pragma unroll N
    for (int j = 0; j < DIRECT_FLOATS / N / THREADS; j++) {
        const unsigned place = at + j * DOWN * (K ? 4 * DIRECT_TERMS : 4 * SIDE);
        const int there = j * DOWN < rows ? bytes : 0;
        if (N == 4)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
                         "r"(there));
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from),
                         "r"(there));
        from += DOWN * f.step;
    }
}

template <bool K>
__device__ __forceinline__ void direct_fetch(float *to, const Factor &f, long long line,
                                             long long k, bool quads)
{
    if (quads)
        direct_copy<K, 4>(to, f, line, k);
    else
        direct_copy<K, 1>(to, f, line, k);
}

// Splits a line of a tile. The result is what the line's sums have to be multiplied by; 0: halves cannot tell
// it, or so small or large a number that the product of two scales may be no float.
template <bool K>
__device__ __forceinline__ float direct_split(const float *from, unsigned char *to, int line)
{
    enum { ONE = 141, RANGE = 60 };
    unsigned most = 0;
    int lost = 0;
    const auto load = [&](int k) {
        if (K) return *(const float4 *)(from + direct_place<K>(line, k));
        return make_float4(from[direct_place<K>(line, k)], from[direct_place<K>(line, k + 1)],
                           from[direct_place<K>(line, k + 2)], from[direct_place<K>(line, k + 3)]);
    };
#pragma unroll
    for (int k = 0; k < DIRECT_TERMS; k += 4) {
        const float4 x = load(k);
        most = max(max(most, magnitude(x.x)),
                   max(magnitude(x.y), max(magnitude(x.z), magnitude(x.w))));
    }
    const int found = (int)(most >> 23), usual = found >= ONE - RANGE && found <= ONE + RANGE,
              exponent = usual ? found : ONE;
    const float scale = __uint_as_float((unsigned)(ONE + 127 - exponent) << 23);
    const unsigned least = (unsigned)(exponent - 18) << 23; // scaled, 1/16: second halves end there
    const auto split = [&](float a, float b, unsigned &first, unsigned &second) {
        lost += magnitude(a) >= least ? -1 : a ? FAR - 1 : 0;
        lost += magnitude(b) >= least ? -1 : b ? FAR - 1 : 0;
        a *= scale, b *= scale;
        const half2 high = __floats2half2_rn(a, b);
        const float2 f = __half22float2(high);
        const half2 low = __floats2half2_rn(a - f.x, b - f.y);
        first = *(const unsigned *)&high, second = *(const unsigned *)&low;
    };
    asm volatile("" ::: "memory"); // read again, so that few registers are needed
    unsigned char *at = to + line * DIRECT_LINE;
#pragma unroll
    for (int k = 0; k < DIRECT_TERMS; k += 8) {
        const float4 x = load(k), y = load(k + 4);
        uint4 first, second;
        split(x.x, x.y, first.x, second.x);
        split(x.z, x.w, first.y, second.y);
        split(y.x, y.y, first.z, second.z);
        split(y.z, y.w, first.w, second.w);
        *(uint4 *)(at + ((k / 8 ^ (line & 7)) << 4)) = first;
        *(uint4 *)(at + ((k / 8 + 4 ^ (line & 7)) << 4)) = second;
    }
    return (most && !usual) || lost > 0 ? 0.f : __uint_as_float((unsigned)(exponent - 14) << 23);
}

// The sums of a tile's `terms` in float32, of so many rows and columns at least.
template <bool AK, bool BK>
__device__ __forceinline__ void direct_exactly(float (&sum)[64], const float *a, const float *b,
                                               long long rows, long long columns, long long terms)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2,
              end = row / 16 * 16 >= rows  ? 0
                    : terms < DIRECT_TERMS ? (int)terms
                                           : DIRECT_TERMS;
#pragma unroll 1
    for (int k = 0; k < end; k++) {
        const float x0 = a[direct_place<AK>(row, k)], x1 = a[direct_place<AK>(row + 8, k)];
#pragma unroll
        for (int j = 0; j < 16; j++) {
            if (j / 4 * 32 >= columns) break;
            const float y0 = b[direct_place<BK>(8 * j + column, k)],
                        y1 = b[direct_place<BK>(8 * j + column + 1, k)];
            sum[4 * j] += x0 * y0, sum[4 * j + 1] += x0 * y1;
            sum[4 * j + 2] += x1 * y0, sum[4 * j + 3] += x1 * y1;
        }
    }
}

__device__ __forceinline__ void direct_multiply(float (&part)[64], unsigned from)
{
    const unsigned long long a = lines_at(from + threadIdx.x / 128 * (DIRECT_HALVES / 2)),
                             b = lines_at(from + DIRECT_HALVES);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DIRECT_TERMS / 16; k++) {
        multiply(part, a + 4 + 2 * k, b + 2 * k, k > 0);
        multiply(part, a + 2 * k, b + 4 + 2 * k, 1);
        multiply(part, a + 2 * k, b + 2 * k, 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for the sums of the tile before, and adds them.
__device__ __forceinline__ void direct_add(float (&sum)[64], float (&part)[64], const float *scales)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(part[i])::"memory");
    const float x0 = scales[row], x1 = scales[row + 8];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const float2 y = *(const float2 *)(scales + SIDE + 8 * j + column);
        sum[4 * j] = fmaf(part[4 * j], x0 * y.x, sum[4 * j]);
        sum[4 * j + 1] = fmaf(part[4 * j + 1], x0 * y.y, sum[4 * j + 1]);
        sum[4 * j + 2] = fmaf(part[4 * j + 2], x1 * y.x, sum[4 * j + 2]);
        sum[4 * j + 3] = fmaf(part[4 * j + 3], x1 * y.y, sum[4 * j + 3]);
    }
}

template <bool AK, bool BK>
__device__ __forceinline__ void direct_sums(float (&sum)[64], const Factor a, const Factor b,
                                            long long top, long long left, bool exact)
{
    extern __shared__ unsigned char raw[];
    __shared__ __align__(16) float scales[2][2 * SIDE];
    const unsigned begin = (unsigned)__cvta_generic_to_shared(raw), base = (begin + 1023) & ~1023u;
    unsigned char *halves = raw + (base - begin);
    float *floats = (float *)(halves + 4 * DIRECT_HALVES);
    const int line = threadIdx.x % SIDE, is_a = threadIdx.x < SIDE;
    const bool quads_a = ((a.step | (long long)((size_t)a.p / 4)) & 3) == 0,
               quads_b = ((b.step | (long long)((size_t)b.p / 4)) & 3) == 0;
    const int tiles = (int)((a.depth + DIRECT_TERMS - 1) / DIRECT_TERMS);
    const auto fetch = [&](int t) {
        float *to = floats + t % DIRECT_STAGES * (2 * DIRECT_FLOATS);
        if (t < tiles) {
            direct_fetch<AK>(to, a, top, (long long)t * DIRECT_TERMS, quads_a);
            direct_fetch<BK>(to + DIRECT_FLOATS, b, left, (long long)t * DIRECT_TERMS, quads_b);
        }
        asm volatile("cp.async.commit_group;");
    };
    float part[64];
#pragma unroll
    for (int i = 0; i < 64; i++) part[i] = 0;
    for (int t = 0; t < DIRECT_STAGES - 1; t++) fetch(t);
    bool pending = false;
#pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        const int own = t & 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(DIRECT_STAGES - 2));
        __syncthreads();
        fetch(t + DIRECT_STAGES - 1);
        const float *from = floats + t % DIRECT_STAGES * (2 * DIRECT_FLOATS);
        unsigned char *to = halves + own * (2 * DIRECT_HALVES);
        const float scale = is_a ? direct_split<AK>(from, to, line)
                                 : direct_split<BK>(from + DIRECT_FLOATS, to + DIRECT_HALVES, line);
        scales[own][threadIdx.x] = scale;
        if (pending) direct_add(sum, part, scales[own ^ 1]);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        pending = !__syncthreads_or(exact || scale == 0);
        if (pending)
            direct_multiply(part, base + own * (2 * DIRECT_HALVES));
        else
            direct_exactly<AK, BK>(sum, from, from + DIRECT_FLOATS, a.lines - top, b.lines - left,
                                   a.depth - (long long)t * DIRECT_TERMS);
    }
    if (pending) direct_add(sum, part, scales[(tiles & 1) ^ 1]);
}

// As product, but for zeros of factors.
template <bool AK, bool BK, typename E>
__device__ __forceinline__ void product_directly(const Factor a, const Factor b, const Bands &bands,
                                                 const Piece piece, long long tile, E each)
{
    const TilePlace at = tile_place(a, b, tile);
    float sum[64];
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0;
    if (terms_of(bands, at.top, at.left, a.depth).needed)
        direct_sums<AK, BK>(sum, piece_of<AK>(a, piece), piece_of<BK>(b, piece), at.top, at.left,
                            a.depth <= SHORT);
    product_rows(sum, at, each);
}

//@ few
// Products of few rows, which take as long as the right factor takes to be read. The lines of both factors
// lie in one piece each. A block has FEW_ROWS rows and FEW_LINES columns, a warp FEW_COLUMNS of these.
enum {
    FEW_ROWS = 16,
    FEW_LINES = 64,
    FEW_COLUMNS = 8,
    FEW_TERMS = 128,
    FEW_STAGES = 5,
    FEW_THREADS = 256
};

// Begins to copy FEW_TERMS terms of LINES lines; beyond the factor there are zeros.
template <int LINES>
__device__ __forceinline__ void fetch_lines(float *to, const Factor &f, long long line, long long k,
                                            bool quads)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const long long left = f.lines - line, terms = f.depth - k;
    const int lines = left < LINES ? (int)left : LINES,
              end = terms < FEW_TERMS ? (int)terms : FEW_TERMS;
    const float *from = f.p + line * f.step + k;
    if (quads) {
#pragma unroll
        for (int i = 0; i < LINES * FEW_TERMS / 4; i += FEW_THREADS) {
            const int l = (i + threadIdx.x) / (FEW_TERMS / 4),
                      x = threadIdx.x % (FEW_TERMS / 4) * 4;
            const int bytes = (l < lines) & (x < end) ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             place + (i + threadIdx.x) * 16),
                         "l"(from + l * f.step + x), "r"(bytes));
        }
    } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < LINES * FEW_TERMS; i += FEW_THREADS) {
            const int l = i / FEW_TERMS, x = i % FEW_TERMS, bytes = (l < lines) & (x < end) ? 4 : 0;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place + i * 4),
                         "l"(from + l * f.step + x), "r"(bytes));
        }
    }
}

// Adds up the N values of all lanes, in steps of D lanes: each lane has 4 of the sums, from 4 * lane on.
template <int N, int D> __device__ __forceinline__ void exchange(float *v)
{
    const bool upper = threadIdx.x & D;
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        const float send = upper ? v[i] : v[i + N / 2], own = upper ? v[i + N / 2] : v[i];
        v[i] = own + __shfl_xor_sync(0xffffffffu, send, D);
    }
}

// Each gets the sum of a row and a column, over the piece's terms.
template <typename E>
__device__ __forceinline__ void few_rows(const Factor a, const Factor b, const Piece piece,
                                         long long top, long long left, E each)
{
    constexpr int STAGE_FLOATS = (FEW_ROWS + FEW_LINES) * FEW_TERMS;
    extern __shared__ __align__(16) float stages[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool quads_a = ((a.step | a.depth | (long long)((size_t)a.p / 4)) & 3) == 0;
    const bool quads_b = ((b.step | b.depth | (long long)((size_t)b.p / 4)) & 3) == 0;
    const Range steps = range_of(piece, (a.depth + FEW_TERMS - 1) / FEW_TERMS);
    float sum[FEW_ROWS * FEW_COLUMNS];
#pragma unroll
    for (int i = 0; i < FEW_ROWS * FEW_COLUMNS; i++) sum[i] = 0;
    for (long long t = steps.first + 1 - FEW_STAGES; t < steps.end; t++) {
        if (t >= steps.first) {
            asm volatile("cp.async.wait_group %0;" ::"n"(FEW_STAGES - 2));
            __syncthreads();
        }
        const long long next = t + FEW_STAGES - 1;
        if (next < steps.end) {
            float *to = stages + next % FEW_STAGES * STAGE_FLOATS;
            fetch_lines<FEW_ROWS>(to, a, top, next * FEW_TERMS, quads_a);
            fetch_lines<FEW_LINES>(to + FEW_ROWS * FEW_TERMS, b, left, next * FEW_TERMS, quads_b);
        }
        asm volatile("cp.async.commit_group;");
        if (t < steps.first) continue;
        const float4 *x = (const float4 *)(stages + t % FEW_STAGES * STAGE_FLOATS) + lane;
        const float4 *y = x + (FEW_ROWS + warp * FEW_COLUMNS) * (FEW_TERMS / 4);
        float4 w[FEW_COLUMNS];
#pragma unroll
        for (int c = 0; c < FEW_COLUMNS; c++) w[c] = y[c * (FEW_TERMS / 4)];
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) {
            const float4 v = x[r * (FEW_TERMS / 4)];
#pragma unroll
            for (int c = 0; c < FEW_COLUMNS; c++) {
                float &s = sum[r * FEW_COLUMNS + c];
                s += v.x * w[c].x, s += v.y * w[c].y, s += v.z * w[c].z, s += v.w * w[c].w;
            }
        }
    }
    exchange<128, 16>(sum);
    exchange<64, 8>(sum);
    exchange<32, 4>(sum);
    exchange<16, 2>(sum);
    exchange<8, 1>(sum);
#pragma unroll
    for (int i = 0; i < 4; i++)
        each(top + lane / 2, left + warp * FEW_COLUMNS + lane % 2 * 4 + i, sum[i]);
}

//@ stages
// Barriers in shared memory, of so many threads: a stage is full, or free again.
__device__ __forceinline__ void barrier_begin(unsigned at, int threads)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(threads) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned at, int phase)
{
    int done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(at), "r"(phase)
                     : "memory");
}

// A stage in shared memory, and how often, modulo 2, all of them were passed.
struct Stage {
    int at, phase;
};

template <int STAGES> __device__ __forceinline__ void stage_advance(Stage &s)
{
    if (++s.at == STAGES) s.at = 0, s.phase ^= 1;
}

//@ half
// Products of matrices of half types. A block makes one tile of 128 rows after another. One warp group
// copies factors and runs ahead, into the next tile, too; two make the sums.
enum {
    HALF_ROWS = 128,
    HALF_TERMS = 64,
    HALF_MAKERS = 256,                   // threads that make sums
    HALF_COPIERS = 128,                  // and that copy
    HALF_STEP = HALF_COPIERS / 8,        // lines, or terms, that they copy at once
    HALF_LINE = 2 * HALF_TERMS,          // bytes in shared memory
    HALF_GROUP = HALF_LINE * HALF_TERMS, // of 64 lines of a factor
    HALF_STAGING = 8 * 16 * HALF_LINE    // of results: 64 columns of 16 rows a warp
};

// One factor: element k of a line is p[line * step + k] if K, else p[line + k * step]. Those of a batch are
// `next` apart.
template <typename T> struct HalfFactor {
    const T *p;
    long long lines, depth, step, next;
};

// Results, and the same as bits.
template <typename O> union HalfPair {
    O v[2];
    unsigned bits;
    __device__ __forceinline__ HalfPair()
    {
    }
};

// Where a thread has results: its two rows, the tile's first column and the last that is there, and the rows
// of its warp that are there.
struct HalfSpot {
    long long batch, row, below, column;
    int end, rows;
};

// Which of two neighbours a value is of, or -1: one by itself.
template <int J> struct HalfOf {
};

template <int J> __device__ __forceinline__ float half_of(const __half *, unsigned both)
{
    return (float)__ushort_as_half((unsigned short)(both >> 16 * J));
}

template <int J> __device__ __forceinline__ float half_of(const __nv_bfloat16 *, unsigned both)
{
    return __uint_as_float(J ? both & 0xffff0000u : both << 16);
}

// An element where a value is made of sums. The two of neighbours are one word.
template <int J, typename O>
__device__ __forceinline__ float half_read(HalfOf<J>, const O *p, long long i)
{
    return J < 0 ? (float)p[i] : half_of<J & 1>(p, *(const unsigned *)(p + i - J));
}

template <typename O> union HalfPiece {
    O v[8];
    uint4 bits;
    __device__ __forceinline__ HalfPiece()
    {
    }
};

// Copies 8 elements, of which `inside` are the factor's; the others become zeros.
template <typename T>
__device__ __forceinline__ void half_copy(unsigned to, const T *from, int inside)
{
    unsigned v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const unsigned short *at = (const unsigned short *)from + 2 * i;
        const unsigned low = 2 * i < inside ? at[0] : 0, high = 2 * i + 1 < inside ? at[1] : 0;
        v[i] = high << 16 | low;
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]),
                 "r"(v[2]), "r"(v[3])
                 : "memory");
}

__device__ __forceinline__ int half_inside(long long n)
{
    return n < 0 ? 0 : n > 8 ? 8 : (int)n;
}

// What a thread copies of a tile's lines: from its first piece on, whose term is 0, and how many lines of the
// factor there are from this piece's on.
template <typename T> struct HalfCopies {
    const T *from;
    int lines;
};

template <typename T, bool K>
__device__ __forceinline__ HalfCopies<T> half_copies(const HalfFactor<T> &f, long long batch,
                                                     long long line)
{
    const int x = threadIdx.x % 8 * 8, y = threadIdx.x % HALF_COPIERS / 8;
    const long long first = line + (K ? y : x), left = f.lines - first;
    return {f.p + batch * f.next + (K ? first * f.step + x : first + y * f.step),
            left < HALF_ROWS * 2 ? (int)left : HALF_ROWS * 2};
}

// Copies 64 terms of LINES lines, from the k-th one on. Of each 128 bytes the 16-byte pieces lie at their
// numbers xor the number of these bytes.
template <typename T, bool K, int LINES>
__device__ __forceinline__ void half_fetch(unsigned to, const HalfFactor<T> &f,
                                           const HalfCopies<T> &c, long long k)
{
    enum { ACROSS = K ? 1 : LINES / 64, DOWN = (K ? LINES : HALF_TERMS) / HALF_STEP };
    const bool whole = ((f.step | f.next | (long long)((size_t)f.p / 2)) & 7) == 0;
    const int x = threadIdx.x % 8, y = threadIdx.x % HALF_COPIERS / 8;
    const int terms = half_inside(f.depth - k - 8 * x);
    const long long left = f.depth - k - y;
    const int rest = K ? c.lines : left < HALF_TERMS ? (int)left : HALF_TERMS;
    const T *from = c.from + (K ? k : k * f.step);
    const long long step = HALF_STEP * f.step;
    to += y * HALF_LINE + ((x ^ (y & 7)) << 4);
    if (whole) {
#pragma unroll
        for (int j = 0; j < DOWN; j++, from += step)
#pragma unroll
            for (int g = 0; g < ACROSS; g++) {
                const int n = K ? terms : half_inside(c.lines - g * 64);
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                                 to + j * HALF_STEP * HALF_LINE + g * HALF_GROUP),
                             "l"(from + g * 64), "r"(j * HALF_STEP < rest ? 2 * n : 0));
            }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < DOWN * ACROSS; i++) {
        const int j = i / ACROSS, g = i % ACROSS;
        const int n = K ? terms : half_inside(c.lines - g * 64);
        half_copy(to + j * HALF_STEP * HALF_LINE + g * HALF_GROUP, from + j * step + g * 64,
                  j * HALF_STEP < rest ? n : 0);
    }
}

// Which of a factor's lines in shared memory a product reads, with 64 terms in one piece if K, else 64 lines
// of a term: the word of a descriptor that has their address. The other word is the same for all.
template <bool K> __device__ __forceinline__ unsigned half_lines_at(unsigned shared)
{
    return (shared & 0x3ffff) >> 4 | (K ? 1u : HALF_GROUP / 16u) << 16;
}

// APART: 16 bytes from 8 lines to the next ones; 0: the same are read again.
template <int APART> __device__ __forceinline__ unsigned long long half_descriptor(unsigned lines)
{
    unsigned long long both;
    asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(lines), "r"(1u << 30 | APART));
    return both;
}

// What a block makes at once: a tile, or the part of its sums from one step of 64 terms to another.
struct HalfPlace {
    long long batch, part, row, column, first, end;
};

// least, most: only sums of the columns from row + least to row + most are needed.
struct HalfWork {
    long long rows, columns, depth, batch;
    int parts;
    long long least, most;
};

// The n-th one. Neighbours share factors in L2. A result of 2^31 tiles fits no memory.
template <int COLUMNS>
__device__ __forceinline__ HalfPlace half_place(const HalfWork &w, long long n)
{
    const int RASTER = 8, across = (int)((w.columns + COLUMNS - 1) / COLUMNS),
              down = (int)((w.rows + HALF_ROWS - 1) / HALF_ROWS);
    const int part = (int)n % w.parts, tile = (int)n / w.parts % (across * down),
              batch = (int)n / w.parts / (across * down);
    const int above = tile / (RASTER * across) * RASTER,
              high = down - above < RASTER ? down - above : RASTER, inside = tile - above * across;
    const int steps = (int)((w.depth + HALF_TERMS - 1) / HALF_TERMS),
              each = (steps + w.parts - 1) / w.parts, first = part * each;
    const int end = first + each < steps ? first + each : steps;
    const long long top = (long long)(above + inside % high) * HALF_ROWS,
                    left = (long long)(inside / high) * COLUMNS;
    const bool needed =
        left + COLUMNS - 1 - top >= w.least && left - (top + HALF_ROWS - 1) <= w.most;
    return {batch, part, top, left, first, !needed ? first : end > first ? end : first + 1};
}

// Gives `each` two neighbouring sums of a row at a time, those of both products if PAIR. A warp has 16 rows.
template <int N, bool PAIR, typename E>
__device__ __forceinline__ void half_each(const float (&d)[N / 2], const HalfPlace &p, E each)
{
    const int lane = threadIdx.x % 32;
    const long long row = p.row + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < (PAIR ? N / 16 : N / 8); i++)
#pragma unroll
        for (int k = 4 * i; k < 4 * i + 4; k += 2)
            each(p, row + k % 4 * 4, p.column + 8 * i + lane % 4 * 2, d + k,
                 d + (PAIR ? k + N / 4 : k));
    __syncwarp();
}

// The results of 64 columns at most, 16 by 16, from the first one on: 16 rows of a warp. Columns beyond `end`
// and rows beyond the last one are taken for these, but where all are inside.
template <int N, bool PAIR, bool WHOLE, int GROUPS, typename O, typename V>
__device__ __forceinline__ void half_values(const float (&d)[N / 2], int first, const HalfSpot &s,
                                            V value, HalfPair<O> (&v)[4 * GROUPS])
{
#pragma unroll
    for (int h = 0; h < 4 * GROUPS; h++) {
        const int i = first / 8 + h / 2, k = 4 * i + h % 2 * 2, l = PAIR ? k + N / 4 : k;
        const int x = 8 * i + threadIdx.x % 4 * 2;
        const long long row = WHOLE || !(h % 2) ? s.row + h % 2 * 8 : s.below;
        v[h].v[0] = value(HalfOf < WHOLE ? 0 : -1 > (), s.batch, row,
                          s.column + (WHOLE || x < s.end ? x : s.end), d[k], d[l]);
        v[h].v[1] = value(HalfOf < WHOLE ? 1 : -1 > (), s.batch, row,
                          s.column + (WHOLE || x + 1 < s.end ? x + 1 : s.end), d[k + 1], d[l + 1]);
    }
}

// Results of a half type, which `value` makes of sums: each row's 64 lie in shared memory, in 128 bytes of
// the warp's own, before they are stored in one piece.
template <int N, bool PAIR, bool WHOLE, int FIRST, typename O, typename V>
__device__ __forceinline__ void half_piece(const float (&d)[N / 2], unsigned own, const HalfSpot &s,
                                           const HalfWork &w, O *to, V value)
{
    constexpr int LEFT = (PAIR ? N / 2 : N) - FIRST, GROUPS = LEFT < 64 ? LEFT / 16 : 4;
    const int lane = threadIdx.x % 32, r = lane % 16, x = lane % 8;
    HalfPair<O> v[4 * GROUPS];
    half_values<N, PAIR, WHOLE, GROUPS>(d, FIRST, s, value, v);
#pragma unroll
    for (int j = 0; j < 4 * GROUPS; j += 4)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         own + r * 128 + (((j / 2 + lane / 16) ^ (r & 7)) << 4)),
                     "r"(v[j].bits), "r"(v[j + 1].bits), "r"(v[j + 2].bits), "r"(v[j + 3].bits)
                     : "memory");
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 16; j += 4) {
        const int y = lane / 8 + j, first = FIRST + x * 8;
        HalfPiece<O> piece;
        if (x >= 2 * GROUPS) continue;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(piece.bits.x), "=r"(piece.bits.y), "=r"(piece.bits.z),
                       "=r"(piece.bits.w)
                     : "r"(own + y * 128 + ((x ^ (y & 7)) << 4))
                     : "memory");
        O *at = to + j * w.columns + FIRST;
        if (!WHOLE && y >= s.rows) continue;
        if (WHOLE) { // by one instruction: the compiler stores the first vector as four words
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(piece.bits.x),
                         "r"(piece.bits.y), "r"(piece.bits.z), "r"(piece.bits.w)
                         : "memory");
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (first + i <= s.end) at[i] = piece.v[i];
        }
    }
    __syncwarp();
    if constexpr (LEFT > 64) half_piece<N, PAIR, WHOLE, FIRST + 64>(d, own, s, w, to, value);
}

// All results of a tile. even: the result and what `value` reads begin at multiples of 16 bytes.
template <int N, bool PAIR, typename O, typename V>
__device__ __forceinline__ void half_results(const float (&d)[N / 2], unsigned own,
                                             const HalfPlace &p, const HalfWork &w, O *out,
                                             bool even, V value)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N;
    const int lane = threadIdx.x % 32;
    const long long top = p.row + threadIdx.x / 32 * 16, left = w.columns - p.column,
                    down = top + lane / 4, last = w.rows - 1;
    O *to = out + (p.batch * w.rows + top + lane / 8) * w.columns + p.column + lane % 8 * 8;
    if (even && w.columns % 8 == 0 && left >= COLUMNS && p.row + HALF_ROWS <= w.rows) {
        half_piece<N, PAIR, true, 0>(d, own, {p.batch, down, down + 8, p.column, 0, 0}, w, to,
                                     value);
        return;
    }
    const int end = left < COLUMNS ? (int)left - 1 : COLUMNS - 1,
              rows = w.rows - top < 16 ? (int)(w.rows - top) : 16;
    half_piece<N, PAIR, false, 0>(d, own,
                                  {p.batch, down < last ? down : last,
                                   down + 8 < last ? down + 8 : last, p.column, end, rows},
                                  w, to, value);
}

// Where a block has its stages in shared memory, and their barriers; and how much it and the others have to
// do.
struct HalfRoom {
    unsigned base, full, empty, turns;
    long long items;
};

// The copies of all tiles of a block. Those of AHEAD steps are under way at once.
template <typename T, bool AK, bool BK, int N, bool PAIR, int STAGES>
__device__ __forceinline__ void half_bring(const HalfFactor<T> &a, const HalfFactor<T> &b,
                                           const HalfFactor<T> &c, const HalfWork &w,
                                           const HalfRoom &room)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N, LEFT = HALF_ROWS * HALF_LINE,
                  STAGE = LEFT + N * HALF_LINE, AHEAD = STAGES - 2;
    Stage s = {0, 1};
    int steps = 0, done = 0;
    const auto finish = [&] {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        barrier_arrive(room.full + 8 * done);
        done = done + 1 == STAGES ? 0 : done + 1;
    };
    for (long long item = blockIdx.x; item < room.items; item += gridDim.x) {
        const HalfPlace p = half_place<COLUMNS>(w, item);
        const auto x = half_copies<T, AK>(a, p.batch, p.row);
        const auto y = half_copies<T, BK>(b, p.batch, p.column),
                   z = half_copies<T, BK>(c, p.batch, p.column);
#pragma unroll 1
        for (long long k = p.first; k < p.end; k++) {
            barrier_wait(room.empty + 8 * s.at, s.phase);
            const unsigned at = room.base + s.at * STAGE;
            half_fetch<T, AK, HALF_ROWS>(at, a, x, k * HALF_TERMS);
            half_fetch<T, BK, COLUMNS>(at + LEFT, b, y, k * HALF_TERMS);
            if (PAIR)
                half_fetch<T, BK, COLUMNS>(at + LEFT + COLUMNS * HALF_LINE, c, z, k * HALF_TERMS);
            asm volatile("cp.async.commit_group;");
            if (steps < AHEAD) {
                steps++;
            } else {
                asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD) : "memory");
                finish();
            }
            stage_advance<STAGES>(s);
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    while (steps--) finish();
}

// Sums begin with their columns' bias: a product of 16 terms, which are 1 and the bias, and zeros. It takes
// less time than an addition for each sum (2026-12-01). In shared memory 8 rows of such a left factor are all
// of its rows; each warp group has a right one, 16 terms of 64 columns after another.
enum { HALF_ONES = 8 * HALF_LINE, HALF_TERM_GROUP = 16 * HALF_LINE };

template <typename T, int N>
__device__ __forceinline__ void half_bias_begin(unsigned ones, unsigned own)
{
    const T one = (T)1.f;
    const int y = threadIdx.x / 32, x = threadIdx.x % 32;
    const unsigned word = x == 4 * y ? *(const unsigned short *)&one : 0;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(ones + threadIdx.x * 4), "r"(word) : "memory");
    for (int i = threadIdx.x % 128 * 4; i < N / 64 * HALF_TERM_GROUP; i += 512)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(own + i), "r"(0) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 3, %0;" ::"r"(HALF_MAKERS) : "memory");
}

// The bias of two columns of the tile that begins at this one, which a thread has of it.
template <typename T>
__device__ __forceinline__ unsigned half_bias_read(const T *bias, long long column,
                                                   long long columns)
{
    const long long at = column + threadIdx.x % 128 * 2;
    const unsigned short *of = (const unsigned short *)bias + at;
    const unsigned low = at < columns ? of[0] : 0, high = at + 1 < columns ? of[1] : 0;
    return high << 16 | low;
}

template <typename T, int N, int PIECES>
__device__ __forceinline__ void half_bias_multiply(float (&d)[PIECES][N / 2], unsigned ones,
                                                   unsigned own, unsigned group, unsigned word)
{
    const int x = threadIdx.x % 128;
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); // all have used the last one
    if (x < N / 2)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(own + x / 32 * HALF_TERM_GROUP + x % 32 * 4),
                     "r"(word)
                     : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int j = 0; j < PIECES; j++)
        half_multiply<true, false>(
            T(), d[j], half_descriptor<0>(half_lines_at<true>(ones)),
            half_descriptor<64>((own & 0x3ffff) >> 4 | HALF_TERM_GROUP / 16 << 16), 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// `steps` stages are those of others.
template <int STAGES> __device__ __forceinline__ void half_skip(Stage &s, int steps)
{
    const int at = s.at + steps;
    s.phase ^= at / STAGES & 1;
    s.at = at % STAGES;
}

// Where a warp group's factors begin in the first stage, and the barriers of stages.
struct HalfFactors {
    unsigned x, y, full, empty;
};

// Multiplies the stages of a tile. Returns the last one, which is not free yet.
template <typename T, bool AK, bool BK, int STAGES, int STAGE, bool BIAS, int PIECES, int SUMS>
__device__ __forceinline__ int half_steps(float (&d)[PIECES][SUMS], int steps, const HalfFactors f,
                                          Stage &s)
{
    int last = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        barrier_wait(f.full + 8 * s.at, s.phase);
        const unsigned at = s.at * (STAGE / 16);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < HALF_TERMS / 16; i++)
#pragma unroll
            for (int j = 0; j < PIECES; j++)
                half_multiply<AK, BK>(
                    T(), d[j],
                    half_descriptor<64>(f.x + at + j * (HALF_GROUP / 16) + i * (AK ? 2 : 128)),
                    half_descriptor<64>(f.y + at + i * (BK ? 2 : 128)), BIAS || k + i > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (k && threadIdx.x % 32 == 0) barrier_arrive(f.empty + 8 * last);
        last = s.at;
        stage_advance<STAGES>(s);
    }
    return last;
}

// The sums of all tiles of a block, which begin with the bias if BIAS. Both warp groups share a tile, or each
// has every other tile if TURNS, so that one makes results under the other's products.
template <typename T, bool AK, bool BK, int N, bool PAIR, int STAGES, bool BIAS, bool TURNS,
          typename E>
__device__ __forceinline__ void half_make(const HalfWork &w, const HalfRoom &room, const T *bias,
                                          E each)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N, LEFT = HALF_ROWS * HALF_LINE,
                  STAGE = LEFT + N * HALF_LINE, PIECES = TURNS ? 2 : 1; // of 64 rows
    const bool lead = threadIdx.x % 32 == 0;
    // The compiler sees that these are the same for a warp: it keeps them in uniform registers.
    const unsigned base = __shfl_sync(0xffffffffu, room.base, 0),
                   group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0),
                   full = __shfl_sync(0xffffffffu, room.full, 0),
                   x = half_lines_at<AK>(base + (TURNS ? 0 : group * HALF_GROUP)),
                   y = half_lines_at<BK>(base + LEFT), ones = base + STAGES * STAGE + HALF_STAGING,
                   own = ones + HALF_ONES + group * (N / 64 * HALF_TERM_GROUP);
    const int own_turn = TURNS ? threadIdx.x / 128 : 0;
    const auto steps_of = [&](long long item) {
        const HalfPlace p = half_place<COLUMNS>(w, item < room.items ? item : blockIdx.x);
        return (int)(p.end - p.first);
    };
    Stage s = {0, 0};
    int turn = 1 - own_turn;
    float d[PIECES][N / 2];
#pragma unroll
    for (int i = 0; i < PIECES * N / 2; i++) d[i / (N / 2)][i % (N / 2)] = 0;
    long long item = blockIdx.x + own_turn * gridDim.x;
    if (own_turn) half_skip<STAGES>(s, steps_of(blockIdx.x));
    HalfPlace p = half_place<COLUMNS>(w, item);
    unsigned word = 0;
    if (BIAS) {
        half_bias_begin<T, N>(ones, own);
        word = half_bias_read(bias, p.column, w.columns);
    }
    for (; item < room.items; item += gridDim.x * PIECES) {
        const int steps = (int)(p.end - p.first);
#pragma unroll
        for (int i = 0; i < PIECES * N / 2; i++)
            asm volatile("" : "+f"(d[i / (N / 2)][i % (N / 2)])::"memory");
        if (BIAS) half_bias_multiply<T, N, PIECES>(d, ones, own, group, word);
        if (TURNS) barrier_wait(room.turns + 8 * group, turn);
        turn ^= 1;
        const int last =
            half_steps<T, AK, BK, STAGES, STAGE, BIAS>(d, steps, {x, y, full, room.empty}, s);
        if (TURNS && lead) barrier_arrive(room.turns + 8 - 8 * group);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < PIECES * N / 2; i++)
            asm volatile("" : "+f"(d[i / (N / 2)][i % (N / 2)])::"memory");
        if (steps && lead) barrier_arrive(room.empty + 8 * last);
        if (!steps && !BIAS)
#pragma unroll
            for (int i = 0; i < PIECES * N / 2; i++)
                asm volatile("mov.f32 %0, 0f00000000;" : "=f"(d[i / (N / 2)][i % (N / 2)]));
        HalfPlace now = p;
        if (TURNS) {
            half_skip<STAGES>(s, steps_of(item + gridDim.x));
            now.row -= 64 * own_turn;
        }
        const long long next = item + gridDim.x * PIECES; // its bias comes while results are made
        p = half_place<COLUMNS>(w, next < room.items ? next : item);
        if (BIAS) word = half_bias_read(bias, p.column, w.columns);
#pragma unroll
        for (int j = 0; j < PIECES; j++, now.row += 64) each(d[j], now);
    }
}

// The sums over k of a[row][k] * b[column][k], and of a with c if PAIR: N columns of both at once. `each`
// gets a tile of sums, its place, and the address of the warp's own 2,048 bytes. `bring` copies by tensor
// maps if `mapped`. Sums begin with `bias` if BIAS.
template <typename T, bool AK, bool BK, int N, bool PAIR, int STAGES, bool BIAS, bool TURNS,
          typename C, typename E>
__device__ __forceinline__ void half_product(const HalfFactor<T> a, const HalfFactor<T> b,
                                             const HalfFactor<T> c, const HalfWork w, bool mapped,
                                             C bring, const T *bias, E each)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N, STAGE = (HALF_ROWS + N) * HALF_LINE;
    extern __shared__ unsigned char raw[];
    __shared__ unsigned long long barriers[2 * STAGES + 2];
    const unsigned base = ((unsigned)__cvta_generic_to_shared(raw) + 1023) & ~1023u,
                   full = (unsigned)__cvta_generic_to_shared(barriers);
    const HalfRoom room = {base, full, full + 8 * STAGES, full + 16 * STAGES,
                           (w.columns + COLUMNS - 1) / COLUMNS *
                               ((w.rows + HALF_ROWS - 1) / HALF_ROWS) * w.batch * w.parts};
    if (threadIdx.x < STAGES) {
        barrier_begin(room.full + 8 * threadIdx.x, mapped ? 1 : HALF_COPIERS);
        barrier_begin(room.empty + 8 * threadIdx.x, HALF_MAKERS / (TURNS ? 64 : 32));
        if (threadIdx.x < 2) barrier_begin(room.turns + 8 * threadIdx.x, HALF_MAKERS / 64);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= HALF_MAKERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        if (!mapped)
            half_bring<T, AK, BK, N, PAIR, STAGES>(a, b, c, w, room);
        else if (threadIdx.x == HALF_MAKERS)
            bring(room);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
        const unsigned own = base + STAGES * STAGE + threadIdx.x / 32 * 2048;
        half_make<T, AK, BK, N, PAIR, STAGES, BIAS, TURNS>(
            w, room, bias, [&](const float(&d)[N / 2], const HalfPlace &p) { each(d, p, own); });
    }
}

//@ half_maps
// Copies of half_product's factors by tensor maps, whose start and whose lines are multiples of 16 bytes.
// EACH: a batch has a factor of its own.
template <typename T, bool EACH> __device__ __forceinline__ bool half_mapped(const HalfFactor<T> &f)
{
    const long long next = EACH ? f.next : 8;
    return ((f.step | next | (long long)((size_t)f.p / 2)) & 7) == 0 && f.step > 0 && next > 0;
}

template <bool EACH>
__device__ __forceinline__ void half_box(unsigned to, const CUtensorMap &map, long long x,
                                         long long y, long long batch, unsigned full)
{
    if (EACH)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                     "l"(&map), "r"((int)x), "r"((int)y), "r"((int)batch), "r"(full)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(&map), "r"((int)x), "r"((int)y), "r"(full)
                     : "memory");
}

// 64 terms of LINES lines.
template <bool K, bool EACH, int LINES>
__device__ __forceinline__ void half_boxes(unsigned to, const CUtensorMap &map, long long line,
                                           long long term, long long batch, unsigned full)
{
    if (K) {
        half_box<EACH>(to, map, term, line, batch, full);
    } else {
#pragma unroll
        for (int g = 0; g < LINES / 64; g++)
            half_box<EACH>(to + g * HALF_GROUP, map, line + g * 64, term, batch, full);
    }
}

// Brings a part of a tile of another factor of the results into L2, while step k is copied: all of it in all
// steps.
template <int COLUMNS, typename O>
__device__ __forceinline__ void half_ahead(const O *from, const HalfWork &w, const HalfPlace &p,
                                           long long k)
{
    const int steps = (int)(p.end - p.first), at = (int)(k - p.first);
    const long long left = w.rows - p.row;
    const int rows = left < HALF_ROWS ? (int)left : HALF_ROWS;
    if (w.columns % 8 || ((size_t)from & 15) || p.column + COLUMNS > w.columns) return;
    for (int r = rows * at / steps; r < rows * (at + 1) / steps; r++)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                         from + (p.batch * w.rows + p.row + r) * w.columns + p.column),
                     "r"(2 * COLUMNS)
                     : "memory");
}

// All tiles of a block, by one thread.
template <bool AK, bool BK, bool AEACH, bool BEACH, int N, bool PAIR, int STAGES, typename F>
__device__ __forceinline__ void half_bring_boxes(const CUtensorMap &a, const CUtensorMap &b,
                                                 const CUtensorMap &c, const HalfWork &w,
                                                 const HalfRoom &room, F ahead)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N, LEFT = HALF_ROWS * HALF_LINE,
                  STAGE = LEFT + N * HALF_LINE;
    Stage s = {0, 1};
    for (long long item = blockIdx.x; item < room.items; item += gridDim.x) {
        const HalfPlace p = half_place<COLUMNS>(w, item);
#pragma unroll 1
        for (long long k = p.first; k < p.end; k++) {
            ahead(p, k);
            const unsigned at = room.base + s.at * STAGE, full = room.full + 8 * s.at;
            barrier_wait(room.empty + 8 * s.at, s.phase);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE)
                         : "memory");
            half_boxes<AK, AEACH, HALF_ROWS>(at, a, p.row, k * HALF_TERMS, p.batch, full);
            half_boxes<BK, BEACH, COLUMNS>(at + LEFT, b, p.column, k * HALF_TERMS, p.batch, full);
            if (PAIR)
                half_boxes<BK, BEACH, COLUMNS>(at + LEFT + COLUMNS * HALF_LINE, c, p.column,
                                               k * HALF_TERMS, p.batch, full);
            stage_advance<STAGES>(s);
        }
    }
}
