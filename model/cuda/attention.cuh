/* The parts that the attention kernels share: tiles of bf16 rows in shared memory, and their
 * products by tensor cores.
 *
 * A tile of D columns consists of panels of up to 64 columns, one after another. A row of a panel
 * has up to 128 bytes, in chunks of 16 bytes that are permuted by row, so that the eight rows of a
 * matrix fragment are in eight different sets of banks. This is also the "128-byte swizzle" of
 * wgmma.
 *
 * On sm_90 heads of 64 and 128 use wgmma: a group of four warps computes 64 rows at a time. All
 * others use mma.m16n8k16, one warp at a time. In both a thread with g = lane/4 and t = lane%4
 * holds, of each 16x8 block of a warp's result, columns 2t and 2t+1 of row g, then the same of row
 * g+8. PTX for plain sm_90 (no "a") has the tiles of wgmma, but computes with mma. */
#ifndef MODEL_CUDA_ATTENTION_CUH
#define MODEL_CUDA_ATTENTION_CUH

#include "engine.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr bool HOPPER = true;
#else
constexpr bool HOPPER = false;
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool WGMMA = true;
#else
constexpr bool WGMMA = false;
#endif

#define INFINITE __int_as_float(0x7f800000)

/* The tile sizes for heads of D. GROUPED: for wgmma. */
template <int D> struct Cut {
    static constexpr bool GROUPED = HOPPER && (D == 64 || D == 128);
    static constexpr int WARPS = GROUPED ? 8 : 4, THREADS = 32 * WARPS;
    static constexpr int BLOCKS = GROUPED ? 1 : D > 64 ? 2 : 3; /* per multiprocessor */
    static constexpr int PANEL = D < 64 ? D : 64,
                         ROW = 2 * PANEL; /* columns of a panel, and bytes of its row */
};

/* ---- one instruction each ---- */

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void copy16(unsigned to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void copy4(unsigned to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* Wait for this thread's copies. After the next barrier they are visible to all threads, and to
 * wgmma. */
__device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    if constexpr (WGMMA) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void load_fragments(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ __forceinline__ void load_transposed(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float2 shared_pair(unsigned at)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
    return v;
}

/* ---- wgmma: the 64 rows of a warp group; accumulators c[block of 8 columns][4] ---- */

#define QUADS_8(c, i) QUADS_4(c, i), QUADS_4(c, i + 4)
#define QUADS_4(c, i) QUAD(c, i), QUAD(c, i + 1), QUAD(c, i + 2), QUAD(c, i + 3)
#define QUAD(c, i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define FRAGMENT(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define SLOTS_32                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SLOTS_64                                                                                  \
    SLOTS_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
             "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/* The low word of the descriptor of a matrix: 8 rows are 1024 bytes, and panels are `panel` bytes
 * apart (read only if the columns are the operand's own rows). Shared memory ends before 2^18, so
 * that an offset is added to the low word, in units of 16 bytes. */
__device__ __forceinline__ unsigned matrix_at(unsigned at, unsigned panel)
{
    return __shfl_sync(~0u, at >> 4 | panel >> 4 << 16,
                       0); /* equal in all lanes, which the compiler then knows */
}

__device__ __forceinline__ unsigned long long descriptor(unsigned low)
{
    return 1ull << 62 | 64ull << 32 | low;
}

/* c = (add ? c : 0) + a b^T over 16 columns of both */
__device__ __forceinline__ void wgmma_rows(float (&c)[8][4], unsigned long long a,
                                           unsigned long long b, int add)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SLOTS_32
                 "}, %32, %33, p, 1, 1, 0, 0; }"
                 : QUADS_8(c, 0)
                 : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void wgmma_rows(float (&c)[16][4], unsigned long long a,
                                           unsigned long long b, int add)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; "
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SLOTS_64
                 "}, %64, %65, p, 1, 1, 0, 0; }"
                 : QUADS_8(c, 0), QUADS_8(c, 8)
                 : "l"(a), "l"(b), "r"(add));
}

/* c += a b over 16 rows of b, with a in registers */
__device__ __forceinline__ void wgmma_add(float (&c)[8][4], const unsigned (&a)[4],
                                          unsigned long long b)
{
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SLOTS_32
                 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1; }"
                 : QUADS_8(c, 0)
                 : FRAGMENT(a), "l"(b));
}

__device__ __forceinline__ void wgmma_add(float (&c)[16][4], const unsigned (&a)[4],
                                          unsigned long long b)
{
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; "
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SLOTS_64
                 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1; }"
                 : QUADS_8(c, 0), QUADS_8(c, 8)
                 : FRAGMENT(a), "l"(b));
}

/* Keep c in its registers, and uses of c on their side of this point. */
template <int M, int N> __device__ __forceinline__ void pin(float (&c)[M][N][4])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++) asm volatile("" : QUAD(c[m], n)::"memory");
}

/* ---- tiles ---- */

/* The offset in bytes of a chunk of a row in a tile of N rows. */
template <int D, int N> __device__ __forceinline__ unsigned chunk_at(int row, int chunk)
{
    constexpr int PANEL = Cut<D>::PANEL / 8, ROW = Cut<D>::ROW;
    return chunk / PANEL * (N * ROW) + row * ROW +
           ((chunk % PANEL ^ (D < 64 ? row >> 1 & 3 : row & 7)) << 4);
}

/* The address of a lane for ldmatrix, for the 16x16 block at row 0 and an even chunk: lanes 0-15
 * have the first halves of the rows, the others the second. */
template <int D, int N> __device__ __forceinline__ unsigned fragment_at(int chunk)
{
    constexpr int PANEL = Cut<D>::PANEL / 8, ROW = Cut<D>::ROW;
    int lane = threadIdx.x & 31, row = lane & 15;
    return chunk / PANEL * (N * ROW) + row * ROW +
           ((chunk % PANEL ^ lane >> 4 ^ (D < 64 ? row >> 1 & 3 : row & 7)) << 4);
}

/* Copy N rows of global memory, ld numbers apart. Rows from `rows` on and columns from `dim` on
 * become 0. The copy is complete after copies_wait. */
template <int D, int N>
__device__ __forceinline__ void tile_load(unsigned tile, const bf16 *from, int ld, int rows,
                                          int dim)
{
    constexpr int CHUNKS = D / 8, STEP = Cut<D>::THREADS / CHUNKS;
    static_assert(Cut<D>::THREADS % CHUNKS == 0 && N % STEP == 0,
                  "every thread copies the same chunk of several rows");
    int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    if (chunk * 8 >= dim) rows = 0;
    from += (long long)row * ld + chunk * 8;
#pragma unroll
    for (int i = 0; i < N; i += STEP) {
        copy16(tile + chunk_at<D, N>(row + i, chunk), from, row + i < rows ? 16 : 0);
        from += STEP * ld;
    }
}

/* Multiply a warp's 16 M rows by `factor` and store them as bf16 rows of global memory, by way of
 * its own rows of a tile of N. The warp, or with wgmma its group, no longer reads these rows. */
template <int D, int M, int N>
__device__ __forceinline__ void rows_store(bf16 *to, int ld, int rows, int dim, unsigned own,
                                           const float (&c)[M][D / 8][4],
                                           const float (&factor)[M][2])
{
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    if constexpr (Cut<D>::GROUPED)
        asm volatile("bar.sync %0, 128;" ::"r"(1 + (threadIdx.x >> 7)) : "memory");
    else
        __syncwarp();
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                asm volatile(
                    "st.shared.b32 [%0], %1;" ::"r"(own + chunk_at<D, N>(16 * m + 8 * h + g, n) +
                                                    4 * t),
                    "r"(pack2(c[m][n][2 * h] * factor[m][h], c[m][n][2 * h + 1] * factor[m][h]))
                    : "memory");
    __syncwarp();
#pragma unroll 4
    for (int i = lane; i < 16 * M * (D / 8); i += 32) {
        int row = i / (D / 8), chunk = i % (D / 8);
        if (row >= rows || chunk * 8 >= dim) continue;
        uint4 v;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(own + chunk_at<D, N>(row, chunk))
                     : "memory");
        *(uint4 *)(to + (long long)row * ld + chunk * 8) = v;
    }
}

/* ---- products: asynchronous until products_wait; operands must not change until then ---- */

/* Wait until at most LEFT products are incomplete. c belongs to a complete one and is used next. */
template <int D, int LEFT, int M, int N>
__device__ __forceinline__ void products_wait(float (&c)[M][N][4])
{
    if constexpr (WGMMA && Cut<D>::GROUPED) {
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
        pin(c);
    }
}

/* c = a b^T: rows from `a` on of a tile of ROWS (64 of the group, or 16 M of the warp) by the N
 * rows of a tile. */
template <int D, int ROWS, int M, int N>
__device__ __forceinline__ void product_rows(float (&c)[M][N / 8][4], unsigned a, unsigned b)
{
    constexpr int ROW = Cut<D>::ROW;
    if constexpr (WGMMA && Cut<D>::GROUPED) {
        unsigned at_a = matrix_at(a, 0), at_b = matrix_at(b, 0);
        pin(c);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < D / 16; k++)
            wgmma_rows(c[0], descriptor(at_a + k / 4 * (ROWS * ROW / 16) + k % 4 * 2),
                       descriptor(at_b + k / 4 * (N * ROW / 16) + k % 4 * 2), k > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    } else {
        if constexpr (Cut<D>::GROUPED) a += (threadIdx.x >> 5 & 3) * 16 * ROW;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N / 8; n++) c[m][n][0] = c[m][n][1] = c[m][n][2] = c[m][n][3] = 0;
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            unsigned left[M][4];
#pragma unroll
            for (int m = 0; m < M; m++)
                load_fragments(left[m], a + m * (16 * ROW) + fragment_at<D, ROWS>(2 * k));
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                unsigned right[4];
                load_fragments(right, b + n * (16 * ROW) + fragment_at<D, N>(2 * k));
#pragma unroll
                for (int m = 0; m < M; m++) {
                    mma(c[m][2 * n], left[m], right[0], right[2]);
                    mma(c[m][2 * n + 1], left[m], right[1], right[3]);
                }
            }
        }
    }
}

/* Round the result of a product for the left operand of the next. */
template <int M, int N>
__device__ __forceinline__ void round_rows(unsigned (&p)[M][N / 2][4], const float (&c)[M][N][4])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int k = 0; k < N / 2; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                p[m][k][i] = pack2(c[m][2 * k + (i >> 1)][2 * (i & 1)],
                                   c[m][2 * k + (i >> 1)][2 * (i & 1) + 1]);
}

/* c += p b, where p has N columns and b is a tile of N rows. */
template <int D, int N, int M>
__device__ __forceinline__ void product_add(float (&c)[M][D / 8][4],
                                            const unsigned (&p)[M][N / 16][4], unsigned b)
{
    constexpr int ROW = Cut<D>::ROW;
    if constexpr (WGMMA && Cut<D>::GROUPED) {
        unsigned at = matrix_at(b, N * ROW);
        pin(c);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < N / 16; k++) wgmma_add(c[0], p[0][k], descriptor(at + k * ROW));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    } else {
#pragma unroll
        for (int k = 0; k < N / 16; k++)
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                unsigned right[4];
                load_transposed(right, b + k * (16 * ROW) + fragment_at<D, N>(2 * n));
#pragma unroll
                for (int m = 0; m < M; m++) {
                    mma(c[m][2 * n], p[m][k], right[0], right[1]);
                    mma(c[m][2 * n + 1], p[m][k], right[2], right[3]);
                }
            }
    }
}

/* Set a warp's scores to `value` where the key is after the query. Keys begin at `key`, queries at
 * `query`. */
template <int M, int N>
__device__ __forceinline__ void mask_later(float (&s)[M][N][4], int query, int key, float value)
{
    int edge = query + (int)(threadIdx.x >> 2 & 7) - key - 2 * (int)(threadIdx.x & 3);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (8 * n + (i & 1) - 16 * m - 8 * (i >> 1) > edge) s[m][n][i] = value;
}

/* ---- the rows of a block of threads ---- */

typedef struct {
    int first, len; /* the sequence: its first row and its number of rows */
    int block;      /* index of the block of `size` rows in it */
} Place;

/* Find the place of task `at`. Returns 0 if there is none. The tasks are either `blocks` rounds
 * over the n sequences (blocks > 0), or ordered by sequence: sequence i then has the tasks from
 * start[i]/size + i on, at least as many as its blocks. For sequences of any lengths this takes at
 * most rows/size + n tasks. Tasks are in descending order of work: later blocks first with `last`,
 * since they read more keys; else earlier ones first, since more queries read them. */
__device__ __forceinline__ int place_of(Place *p, int at, const int *start, int n, int blocks,
                                        int size, bool last)
{
    int i, rank;
    if (blocks) {
        i = at % n;
        rank = at / n;
    } else {
        i = -1;
        for (int j = 0; j < n; j += blockDim.x)
            i += __syncthreads_count(j + threadIdx.x < n &&
                                     start[j + threadIdx.x] / size + j + (int)threadIdx.x <= at);
        rank = at - (start[i] / size + i);
    }
    p->first = start[i];
    p->len = start[i + 1] - p->first;
    int own = (p->len + size - 1) / size;
    if (blocks && last) rank -= blocks - own;
    p->block = last ? own - 1 - rank : rank;
    return rank >= 0 && rank < own;
}

#endif
