// Attention by Hopper's tensor cores, in generated kernels. Queries, keys and values are packed first: tiles
// of TILE of them, as lines of 64 elements in the order in which wgmma reads shared memory. Elements in
// float32 are scaled by a power of two for each tile, and are the sum of two halves: three products of halves
// make one of float32's precision. Scores stay in registers, with the largest one and the sum of exponentials
// of each row so far.

//@ attention
namespace flash
{
// Products of at most SHORT terms are made in float32, since few terms do not even out what the halves round.
enum { TILE = 64, PIECE = TILE * 64, PACKERS = 256, SHORT = 8 };

// Element k of a line is p[line * apart + k * step].
template <typename T> struct Side {
    const T *p;
    long long lines, length, apart, step;
    __device__ __forceinline__ T at(long long line, long long k) const
    {
        return line < lines && k < length ? p[line * apart + k * step] : T(0.f);
    }
};

template <typename F> __device__ __forceinline__ long long all_of(long long v, F f)
{
    __shared__ long long shared[PACKERS / 32];
#pragma unroll
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
#pragma unroll
    for (int w = 1; w < PACKERS / 32; w++) v = f(v, shared[w]);
    __syncthreads();
    return v;
}

// What a tile has to be multiplied by to be itself again. Below zero: halves cannot tell it, or products of
// two such factors might be no float.
__device__ __forceinline__ float factor_of(unsigned most, float scale, long long lost)
{
    const int exponent = (int)(__float_as_uint(scale) >> 23) - 127;
    if (most == 0) return 1;
    if (most >= 0x7f800000u || lost > 0 || exponent < -50 || exponent > 50) return -1;
    return __uint_as_float((unsigned)(127 - exponent) << 23);
}

template <typename H> __device__ __forceinline__ unsigned two(H x, H y)
{
    return *(unsigned short *)&x | (unsigned)*(unsigned short *)&y << 16;
}

// Packs the elements of TILE lines. Pieces of WIDE elements are padded to whole ones of 64. TURNED: lines of
// the packed tile are elements, and its elements are lines. ALONG: elements of a line lie in one piece. The
// factor is what the tile has to be multiplied by; below zero: halves cannot tell it.
template <int PARTS, bool TURNED, bool ALONG, int WIDE, typename H, typename T>
__device__ __forceinline__ void pack(const Side<T> side, long long tile, H *to, float *factor)
{
    enum { CHUNKS = (WIDE + 63) / 64, EACH = PIECE / PACKERS };
    __shared__ T turn[64][64 + 4 / sizeof(T)];
    const int chunks = (TURNED ? (int)((side.length + WIDE - 1) / WIDE) : 1) * CHUNKS,
              lane = threadIdx.x % 64, row = threadIdx.x / 64;
    const auto load = [&](int chunk, T(&x)[EACH]) {
        const long long piece = (long long)(chunk / CHUNKS) * WIDE;
        const int first = chunk % CHUNKS * 64;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int other = row + i * (PACKERS / 64), l = ALONG ? other : lane,
                      k = first + (ALONG ? lane : other);
            x[i] = k < WIDE ? side.at(tile * TILE + l, piece + k) : T(0.f);
        }
    };
    T x[EACH];
    unsigned most = 0;
    long long lost = 0;
    for (int c = 0; c < chunks; c++) {
        load(c, x);
#pragma unroll
        for (int i = 0; i < EACH; i++) most = max(most, magnitude((float)x[i]));
    }
    most = (unsigned)all_of(most, [](long long a, long long b) { return a > b ? a : b; });
    const float scale = line_scale(most);
    for (int c = 0; c < chunks; c++) {
        if (chunks > 1) load(c, x);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int other = row + i * (PACKERS / 64);
            turn[ALONG != TURNED ? other : lane][ALONG != TURNED ? lane : other] = x[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = threadIdx.x; i < PIECE / 8; i += PACKERS) {
            const int line = i / 8, eight = i % 8;
            H *at = to + (long long)c * (PARTS * PIECE) + line * 64 + (eight ^ (line & 7)) * 8;
            H first[8], second[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                if constexpr (PARTS == 2)
                    halves(turn[line][eight * 8 + e], scale, first[e], second[e], lost);
                else
                    first[e] = turn[line][eight * 8 + e];
            }
            *(uint4 *)at = make_uint4(two(first[0], first[1]), two(first[2], first[3]),
                                      two(first[4], first[5]), two(first[6], first[7]));
            if constexpr (PARTS == 2)
                *(uint4 *)(at + PIECE) =
                    make_uint4(two(second[0], second[1]), two(second[2], second[3]),
                               two(second[4], second[5]), two(second[6], second[7]));
        }
        __syncthreads();
    }
    lost = all_of(lost, [](long long a, long long b) { return a + b; });
    if (threadIdx.x == 0)
        *factor = PARTS == 2 ? factor_of(most, scale, lost) : most < 0x7f800000u ? 1 : -1;
}

// Lines of 128 bytes, of which the 16-byte pieces lie at their numbers xor the line's.
__device__ __forceinline__ unsigned long long lines_at(unsigned shared)
{
    return (unsigned long long)((shared & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FLASH_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define FLASH_16(i) FLASH_4(i), FLASH_4(i + 4), FLASH_4(i + 8), FLASH_4(i + 12)
#define FLASH_LIST_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define FLASH_LIST_32                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
    "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
// d = a * b, or d += a * b, for 64 lines of a and 64 or 32 of b, and 16 terms. b is in shared memory, a too
// or in registers.
#define FLASH_MULTIPLY(H, TYPE)                                                                    \
    __device__ __forceinline__ void multiply(float(&d)[32], unsigned long long a,                  \
                                             unsigned long long b, int add, H)                     \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                  \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " FLASH_LIST_32 \
                     ", %32, %33, p, 1, 1, 0, 0;\n}"                                               \
                     : FLASH_16(0), FLASH_16(16)                                                   \
                     : "l"(a), "l"(b), "r"(add));                                                  \
    }                                                                                              \
    __device__ __forceinline__ void multiply(float(&d)[32], const unsigned *a,                     \
                                             unsigned long long b, int add, H)                     \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                  \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " FLASH_LIST_32 \
                     ", {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"                                 \
                     : FLASH_16(0), FLASH_16(16)                                                   \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }                                                                                              \
    __device__ __forceinline__ void multiply(float(&d)[16], const unsigned *a,                     \
                                             unsigned long long b, int add, H)                     \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"                                  \
                     "wgmma.mma_async.sync.aligned.m64n32k16.f32." TYPE "." TYPE " " FLASH_LIST_16 \
                     ", {%16, %17, %18, %19}, %20, p, 1, 1, 0;\n}"                                 \
                     : FLASH_16(0)                                                                 \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }
FLASH_MULTIPLY(half, "f16")
FLASH_MULTIPLY(__nv_bfloat16, "bf16")

// The registers of d have no values yet: the first product sets them.
template <int N> __device__ __forceinline__ void begin(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "=f"(d[i])::"memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void end(float (&d)[N])
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Begins to copy packed lines; where there are none, shared memory gets zeros.
template <int BYTES, int THREADS>
__device__ __forceinline__ void fetch(unsigned to, const void *from, bool there)
{
#pragma unroll
    for (int i = 0; i < BYTES / 16; i += THREADS)
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + (i + threadIdx.x) * 16),
            "l"((const char *)from + (there ? (i + threadIdx.x) * 16 : 0)), "r"(there ? 16 : 0));
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;");
}

// All but N groups of copies are there for all threads.
template <int N> __device__ __forceinline__ void await()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
}

__device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The largest, or the sum, of the four threads that share a row.
__device__ __forceinline__ float most_of_row(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

__device__ __forceinline__ float sum_of_row(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

// Two neighbouring weights as the first halves, and as what these leave.
template <int PARTS, typename H>
__device__ __forceinline__ void split(float x, float y, unsigned &first, unsigned &second)
{
    const H a = H(x), b = H(y);
    first = two(a, b);
    if (PARTS == 2) second = two(H(x - float(a)), H(y - float(b)));
}

template <typename T, typename H> struct Packed {
    Side<T> side;
    const H *parts;
    const float *factors;
};

// A block computes GROUPS tiles of queries, and WIDE elements of their results; each gets those of two
// neighbouring ones. Keys and values have STAGES tiles each in shared memory. Element `row, column` of the
// weights is value(row)(column, sum of products), or SOFT: its exponential. Columns from `end` on are zeros.
template <int GROUPS, int STAGES, int STEPS, int WIDE, int PARTS, bool SOFT> struct Attend {
    enum {
        THREADS = 128 * GROUPS,
        DEEP = (STEPS + 3) / 4,
        ACROSS = (WIDE + 63) / 64,
        KEY_BYTES = DEEP * PARTS * PIECE * 2,
        VALUE_BYTES = ACROSS * PARTS * PIECE * 2,
        SHARED = GROUPS * KEY_BYTES + STAGES * (KEY_BYTES + VALUE_BYTES)
    };

    template <typename H>
    static __device__ __forceinline__ void multiply_chunk(float (&s)[32], unsigned q, unsigned k,
                                                          int steps, H type)
    {
        const unsigned long long a = lines_at(q), b = lines_at(k), a1 = lines_at(q + PIECE * 2),
                                 b1 = lines_at(k + PIECE * 2);
        begin(s);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i >= steps) break;
            if (PARTS == 2) multiply(s, a1 + 2 * i, b + 2 * i, i > 0, type);
            if (PARTS == 2) multiply(s, a + 2 * i, b1 + 2 * i, 1, type);
            multiply(s, a + 2 * i, b + 2 * i, PARTS == 2 || i > 0, type);
        }
        end(s);
    }

    // The sums of 64 terms are made apart and added in float32, since a tensor core cuts its sums off.
    template <typename H>
    static __device__ __forceinline__ void multiply_keys(float (&s)[32], unsigned q, unsigned k,
                                                         H type)
    {
        multiply_chunk(s, q, k, STEPS, type);
#pragma unroll
        for (int c = 1; c < DEEP; c++) {
            const unsigned at = c * PARTS * PIECE * 2;
            float part[32];
            multiply_chunk(part, q + at, k + at, STEPS - 4 * c, type);
#pragma unroll
            for (int i = 0; i < 32; i++) s[i] += part[i];
        }
    }

    template <typename T>
    static __device__ __forceinline__ void multiply_exactly(float (&s)[32], const Side<T> &q,
                                                            const Side<T> &k, int row, int left)
    {
        const int column = left + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < 32; i++) s[i] = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (left + 8 * j >= k.lines) break;
#pragma unroll 1
            for (long long d = 0; d < q.length; d++) {
                const float x0 = q.at(row, d), x1 = q.at(row + 8, d), y0 = k.at(column + 8 * j, d),
                            y1 = k.at(column + 8 * j + 1, d);
                s[4 * j] += x0 * y0, s[4 * j + 1] += x0 * y1;
                s[4 * j + 2] += x1 * y0, s[4 * j + 3] += x1 * y1;
            }
        }
    }

    // o += factor * p * v: for each of both rows its own.
    template <int N>
    static __device__ __forceinline__ void add(float *o, const float (&part)[N],
                                               const float (&factor)[2])
    {
#pragma unroll
        for (int i = 0; i < N; i++) o[i] += part[i] * factor[i / 2 % 2];
    }

    static __device__ __forceinline__ void rescale(float (&o)[WIDE / 2], const float (&keep)[2])
    {
        if (__all_sync(0xffffffffu, keep[0] == 1 && keep[1] == 1)) return;
#pragma unroll
        for (int i = 0; i < WIDE / 2; i++) o[i] *= keep[i / 2 % 2];
    }

    template <int N, typename H>
    static __device__ __forceinline__ void multiply_piece(float (&part)[N],
                                                          const unsigned (&p)[2][16], unsigned v,
                                                          H type)
    {
        const unsigned long long b = lines_at(v), b1 = lines_at(v + PIECE * 2);
        begin(part);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (PARTS == 2) multiply(part, p[1] + 4 * i, b + 2 * i, i > 0, type);
            if (PARTS == 2) multiply(part, p[0] + 4 * i, b1 + 2 * i, 1, type);
            multiply(part, p[0] + 4 * i, b + 2 * i, PARTS == 2 || i > 0, type);
        }
        end(part);
    }

    template <typename H>
    static __device__ __forceinline__ void multiply_values(float (&o)[WIDE / 2],
                                                           const float (&s)[32], unsigned v,
                                                           const float (&factor)[2], H type)
    {
        unsigned p[2][16];
#pragma unroll
        for (int i = 0; i < 16; i++) split<PARTS, H>(s[2 * i], s[2 * i + 1], p[0][i], p[1][i]);
#pragma unroll
        for (int c = 0; c < WIDE / 64; c++) {
            float part[32];
            multiply_piece(part, p, v + c * PARTS * PIECE * 2, type);
            add(o + 32 * c, part, factor);
        }
        if constexpr (WIDE % 64 != 0) {
            float part[16];
            multiply_piece(part, p, v + WIDE / 64 * PARTS * PIECE * 2, type);
            add(o + WIDE / 64 * 32, part, factor);
        }
    }

    template <typename T>
    static __device__ __forceinline__ void add_exactly(float (&o)[WIDE / 2], const float (&s)[32],
                                                       const Side<T> &v, int left, long long first)
    {
        float own[32];
#pragma unroll
        for (int i = 0; i < 32; i++) own[i] = s[i];
#pragma unroll 1
        for (int j = 0; j < TILE && left + j < v.lines; j++) {
            const int from = threadIdx.x % 32 / 4 * 4 + j % 8 / 2, at = j / 8 * 4 + j % 2;
            const float x0 = __shfl_sync(0xffffffffu, own[at], from),
                        x1 = __shfl_sync(0xffffffffu, own[at + 2], from);
#pragma unroll
            for (int i = 0; i < WIDE / 2; i += 4) {
                const long long column = first + i * 2 + threadIdx.x % 4 * 2;
                const float y0 = v.at(left + j, column), y1 = v.at(left + j, column + 1);
                o[i] += x0 * y0, o[i + 1] += x0 * y1, o[i + 2] += x1 * y0, o[i + 3] += x1 * y1;
            }
        }
    }

    // Weights of the scores, the sums of each row, and what older results are multiplied by. Weights that
    // become halves are multiplied by 2^RAISE, and so are their sums.
    static __device__ __forceinline__ void weigh(float (&s)[32], float (&most)[2], float (&sum)[2],
                                                 float (&keep)[2])
    {
        constexpr float LOG2_E = 1.4426950408889634f, RAISE = PARTS == 2 ? 14 : 0;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float now = most[r], all = 0;
#pragma unroll
            for (int i = 0; i < 32; i += 4) now = fmaxf(now, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
            now = most_of_row(now);
            const float base = now == -INFINITY ? 0 : now;
            keep[r] = power_of_2((most[r] - base) * LOG2_E);
            most[r] = now;
#pragma unroll
            for (int i = 0; i < 32; i++) {
                if (i / 2 % 2 != r) continue;
                s[i] = power_of_2(fmaf(s[i] - base, LOG2_E, RAISE));
                all += s[i];
            }
            sum[r] = sum[r] * keep[r] + all;
        }
    }

    // Scales weights for halves, of each row by a power of two; what they are multiplied by to be themselves.
    static __device__ __forceinline__ void scale(float (&s)[32], float (&factor)[2])
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float most = 0;
#pragma unroll
            for (int i = 0; i < 32; i += 4)
                most = fmaxf(most, fmaxf(fabsf(s[i + 2 * r]), fabsf(s[i + 2 * r + 1])));
            const float by = line_scale(__float_as_uint(most_of_row(most)));
            factor[r] = __uint_as_float(0x7f000000u - __float_as_uint(by));
#pragma unroll
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == r) s[i] *= by;
        }
    }

    // The scores of a tile. CHECKED: some columns may lie behind the last one.
    template <bool CHECKED, typename V>
    static __device__ __forceinline__ void score(float (&s)[32], float by, int column, int end,
                                                 int columns, const V &first, const V &second)
    {
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const int c = column + i / 4 * 8 + i % 2, own = CHECKED ? min(c, columns - 1) : c;
            const float x = i / 2 % 2 ? second(own, s[i] * by) : first(own, s[i] * by);
            s[i] = !CHECKED || c < end ? x : SOFT ? -INFINITY : 0.f;
        }
    }

    // The columns that a block has to see: a value behind the last one that is no number makes its results
    // none.
    template <typename T, typename H>
    static __device__ __forceinline__ int columns_of(const Packed<T, H> &v, int end)
    {
        const int tiles = (int)((v.side.lines + TILE - 1) / TILE);
        int hidden = 0;
        for (int t = (end + TILE - 1) / TILE + threadIdx.x; t < tiles; t += THREADS)
            hidden |= v.factors[t] < 0;
        return __syncthreads_or(hidden) ? (int)v.side.lines : end;
    }

    template <typename T, typename H>
    static __device__ __forceinline__ void fetch_queries(const Packed<T, H> &q, unsigned to,
                                                         int tile, int tiles)
    {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            const int t = tile * GROUPS + g;
            fetch<KEY_BYTES, THREADS>(to + g * KEY_BYTES,
                                      q.parts + (t < tiles ? t : 0) * (long long)(KEY_BYTES / 2),
                                      t < tiles);
        }
    }

    template <typename T, typename H, typename V, typename E>
    static __device__ __forceinline__ void run(const Packed<T, H> &q, const Packed<T, H> &k,
                                               const Packed<T, H> &v, int tile, long long piece,
                                               int last, V value, E each)
    {
        extern __shared__ unsigned char raw[];
        const unsigned own = ((unsigned)__cvta_generic_to_shared(raw) + 1023) & ~1023u,
                       keys = own + GROUPS * KEY_BYTES, values = keys + STAGES * KEY_BYTES;
        const int group = threadIdx.x / 128, rows = (int)q.side.lines, columns = (int)k.side.lines,
                  row = (tile * GROUPS + group) * TILE + threadIdx.x % 128 / 32 * 16 +
                        threadIdx.x % 32 / 4,
                  end = columns_of(v, last), tiles = (end + TILE - 1) / TILE,
                  query_tiles = (rows + TILE - 1) / TILE;
        const long long pieces = (v.side.length + WIDE - 1) / WIDE;
        const float fq =
            tile * GROUPS + group < query_tiles ? q.factors[tile * GROUPS + group] : 1.f;
        const auto fetch_key = [&](int t) {
            if (t < tiles)
                fetch<KEY_BYTES, THREADS>(keys + t % STAGES * KEY_BYTES,
                                          k.parts + t * (long long)(KEY_BYTES / 2), true);
            commit();
        };
        const auto fetch_value = [&](int t) {
            if (t < tiles)
                fetch<VALUE_BYTES, THREADS>(values + t % STAGES * VALUE_BYTES,
                                            v.parts + (t * pieces + piece) * (VALUE_BYTES / 2),
                                            true);
            commit();
        };
        const auto first = value(min(row, rows - 1)), second = value(min(row + 8, rows - 1));
        fetch_queries(q, own, tile, query_tiles);
#pragma unroll
        for (int s = 0; s < STAGES; s++) fetch_key(s), fetch_value(s);
        float o[WIDE / 2], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < WIDE / 2; i++) o[i] = 0;
        float next_key = tiles > 0 ? k.factors[0] : 1.f,
              next_value = tiles > 0 ? v.factors[0] : 1.f;
        for (int t = 0; t < tiles; t++) {
            const float fk = next_key, fv = next_value;
            const int left = t * TILE, column = left + threadIdx.x % 4 * 2;
            if (t + 1 < tiles) next_key = k.factors[t + 1], next_value = v.factors[t + 1];
            float s[32], keep[2] = {1, 1}, by = PARTS == 2 ? fq * fk : 1;
            await<2 * STAGES - 2>();
            if (t > 0) fetch_value(t - 1 + STAGES);
            if (fq < 0 || fk < 0 || q.side.length > STEPS * 16 ||
                (PARTS == 2 && q.side.length <= SHORT)) {
                multiply_exactly(s, q.side, k.side, row, left);
                by = 1;
            } else {
                multiply_keys(s, own + group * KEY_BYTES, keys + t % STAGES * KEY_BYTES, H(0.f));
            }
            if (left + TILE <= end)
                score<false>(s, by, column, end, columns, first, second);
            else
                score<true>(s, by, column, end, columns, first, second);
            if (SOFT) weigh(s, most, sum, keep);
            await<2 * STAGES - 2>();
            fetch_key(t + STAGES);
            if (SOFT) rescale(o, keep);
            if (fv < 0 || (PARTS == 2 && columns <= SHORT)) {
                add_exactly(o, s, v.side, left, piece * WIDE);
                continue;
            }
            float factor[2] = {1, 1};
            if (PARTS == 2 && !SOFT) scale(s, factor);
            if (PARTS == 2) factor[0] *= fv, factor[1] *= fv;
            multiply_values(o, s, values + t % STAGES * VALUE_BYTES, factor, H(0.f));
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float all = SOFT ? sum_of_row(sum[r]) : 1;
#pragma unroll
            for (int i = 0; i < WIDE / 2; i += 4)
                each(row + 8 * r, piece * WIDE + i * 2 + threadIdx.x % 4 * 2, o[i + 2 * r],
                     o[i + 2 * r + 1], all);
        }
    }
};
} // namespace flash
