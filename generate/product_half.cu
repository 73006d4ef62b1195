// Products of matrices of half types by Hopper's tensor cores, in generated kernels. A block makes one tile
// of 128 rows after another; its copies run ahead of its sums, into the next tile, too.

//@ half
enum {
    HALF_ROWS = 128,
    HALF_TERMS = 64,
    HALF_THREADS = 256,
    HALF_LINE = 2 * HALF_TERMS,         // bytes in shared memory
    HALF_GROUP = HALF_LINE * HALF_TERMS // of 64 lines of a factor
};

// One factor: element k of a line is p[line * step + k] if K, else p[line + k * step]. Those of a batch are
// `next` apart.
template <typename T> struct HalfFactor {
    const T *p;
    long long lines, depth, step, next;
};

// Copies 8 elements, of which `inside` are the factor's; the others become zeros.
template <typename T>
__device__ __forceinline__ void half_copy(unsigned to, const T *from, long long inside, bool whole)
{
    const int n = inside < 0 ? 0 : inside > 8 ? 8 : (int)inside;
    if (whole) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(2 * n));
    } else {
        unsigned v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned short *at = (const unsigned short *)from + 2 * i;
            const unsigned low = 2 * i < n ? at[0] : 0, high = 2 * i + 1 < n ? at[1] : 0;
            v[i] = high << 16 | low;
        }
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]),
                     "r"(v[2]), "r"(v[3])
                     : "memory");
    }
}

// Copies 64 terms of LINES lines. Of each 128 bytes the 16-byte pieces lie at their numbers xor the number of
// these bytes.
template <typename T, bool K, int LINES>
__device__ __forceinline__ void half_fetch(unsigned to, const HalfFactor<T> &f, long long batch,
                                           long long line, long long k)
{
    const bool whole = ((f.step | f.next | (long long)((size_t)f.p / 2)) & 7) == 0;
    const int x = threadIdx.x % 8, y = threadIdx.x / 8;
    const unsigned place = to + y * HALF_LINE + ((x ^ (y & 7)) << 4);
    const T *from = f.p + batch * f.next;
    if (K) {
        const long long left = f.depth - k - x * 8;
        from += (line + y) * f.step + k + x * 8;
#pragma unroll
        for (int j = 0; j < LINES / 32; j++)
            half_copy(place + j * 32 * HALF_LINE, from + j * 32 * f.step,
                      line + y + 32 * j < f.lines ? left : 0, whole);
    } else {
        const long long left = f.lines - line - x * 8;
        from += line + x * 8 + (k + y) * f.step;
#pragma unroll
        for (int j = 0; j < LINES / 32; j++)
            half_copy(place + j / 2 * HALF_GROUP + j % 2 * 32 * HALF_LINE,
                      from + j / 2 * 64 + j % 2 * 32 * f.step,
                      k + y + j % 2 * 32 < f.depth ? left - j / 2 * 64 : 0, whole);
    }
}

// A factor's lines in shared memory, with 64 terms in one piece if K, else 64 lines of a term.
template <bool K> __device__ __forceinline__ unsigned long long half_lines_at(unsigned shared)
{
    return (unsigned long long)((shared & 0x3ffff) >> 4) |
           (unsigned long long)(K ? 1 : HALF_GROUP / 16) << 16 | 64ull << 32 | 1ull << 62;
}

// What a block makes at once: a tile, or the part of its sums from one step of 64 terms to another.
struct HalfPlace {
    long long batch, part, row, column, first, end;
};

struct HalfWork {
    long long rows, columns, depth, batch;
    int parts;
};

// The n-th one. Neighbours share factors in L2.
template <int COLUMNS>
__device__ __forceinline__ HalfPlace half_place(const HalfWork &w, long long n)
{
    const long long RASTER = 8, across = (w.columns + COLUMNS - 1) / COLUMNS,
                    down = (w.rows + HALF_ROWS - 1) / HALF_ROWS;
    const long long tile = n % (across * down), rest = n / (across * down);
    const long long above = tile / (RASTER * across) * RASTER,
                    high = down - above < RASTER ? down - above : RASTER,
                    inside = tile - above * across;
    const long long steps = (w.depth + HALF_TERMS - 1) / HALF_TERMS,
                    each = (steps + w.parts - 1) / w.parts, first = rest % w.parts * each;
    const long long end = first + each < steps ? first + each : steps;
    return {rest / w.parts,          rest % w.parts, (above + inside % high) * HALF_ROWS,
            inside / high * COLUMNS, first,          end > first ? end : first + 1};
}

// Gives `each` two neighbouring sums at a time, in rows of 32 or 64. A warp has 16 rows.
template <int N, bool PAIR, typename E>
__device__ __forceinline__ void half_results(const float (&d)[N / 2], float *stage,
                                             const HalfPlace &p, E each)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const long long row = p.row + threadIdx.x / 32 * 16;
    constexpr int WIDE = PAIR ? 32 : 64;
#pragma unroll
    for (int c = 0; c < N / 64; c++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int i = !PAIR ? 8 * c + j : 4 * c + j % 4 + j / 4 * (N / 16);
            const int place = g * 64 + ((8 * j + 2 * t) ^ (g % 4 * 8));
            *(float2 *)(stage + place) = make_float2(d[4 * i], d[4 * i + 1]);
            *(float2 *)(stage + place + 8 * 64) = make_float2(d[4 * i + 2], d[4 * i + 3]);
        }
        __syncwarp();
#pragma unroll 2
        for (int r = PAIR ? lane / 16 : 0; r < 16; r += 64 / WIDE) {
            const int column = 2 * lane % WIDE;
            const float *at = stage + r * 64;
            const float2 x = *(const float2 *)(at + (column ^ (r % 4 * 8)));
            const float2 y =
                PAIR ? *(const float2 *)(at + ((column + 32) ^ (r % 4 * 8))) : make_float2(0, 0);
            each(p, row + r, p.column + c * WIDE + column, x, y);
        }
        __syncwarp();
    }
}

// The sums over k of a[row][k] * b[column][k], and of a with c if PAIR: N columns of both at once.
template <typename T, bool AK, bool BK, int N, bool PAIR, int STAGES, typename E>
__device__ __forceinline__ void half_product(const HalfFactor<T> a, const HalfFactor<T> b,
                                             const HalfFactor<T> c, const HalfWork w, E each)
{
    constexpr int COLUMNS = PAIR ? N / 2 : N, LEFT = HALF_ROWS * HALF_LINE,
                  STAGE = LEFT + N * HALF_LINE, AHEAD = STAGES - 2;
    extern __shared__ unsigned char raw[];
    const unsigned base = ((unsigned)__cvta_generic_to_shared(raw) + 1023) & ~1023u;
    float *own =
        (float *)(raw + (base - (unsigned)__cvta_generic_to_shared(raw)) + STAGES * STAGE) +
        threadIdx.x / 32 * (16 * 64);
    const long long items = (w.columns + COLUMNS - 1) / COLUMNS *
                            ((w.rows + HALF_ROWS - 1) / HALF_ROWS) * w.batch * w.parts;
    long long next = blockIdx.x, next_k;
    HalfPlace to = half_place<COLUMNS>(w, next);
    next_k = to.first;
    const auto fetch = [&](int stage) {
        const unsigned at = base + stage * STAGE;
        if (next < items) {
            half_fetch<T, AK, HALF_ROWS>(at, a, to.batch, to.row, next_k * HALF_TERMS);
            half_fetch<T, BK, COLUMNS>(at + LEFT, b, to.batch, to.column, next_k * HALF_TERMS);
            if (PAIR)
                half_fetch<T, BK, COLUMNS>(at + LEFT + COLUMNS * HALF_LINE, c, to.batch, to.column,
                                           next_k * HALF_TERMS);
            if (++next_k == to.end) {
                next += gridDim.x;
                to = half_place<COLUMNS>(w, next);
                next_k = to.first;
            }
        }
        asm volatile("cp.async.commit_group;");
    };
    int stage = 0;
    float d[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
#pragma unroll 1
    for (int s = 0; s < AHEAD; s++) fetch(s);
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
        const HalfPlace p = half_place<COLUMNS>(w, item);
        const int steps = (int)(p.end - p.first);
#pragma unroll
        for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
#pragma unroll 1
        for (int k = 0; k < steps; k++) {
            asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1));
            asm volatile("fence.proxy.async;" ::: "memory");
            __syncthreads();
            const unsigned from = base + stage * STAGE;
            const unsigned long long x = half_lines_at<AK>(from + threadIdx.x / 128 * HALF_GROUP),
                                     y = half_lines_at<BK>(from + LEFT);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < HALF_TERMS / 16; i++)
                half_multiply<AK, BK>(T(), d, x + i * (AK ? 2 : 128), y + i * (BK ? 2 : 128),
                                      k + i > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            fetch(stage < 2 ? stage + AHEAD : stage - 2);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory");
        half_results<N, PAIR>(d, own, p, each);
    }
}
