/* Device code that the kernels of a decoding step share: asynchronous copies, matrix instructions,
 * and the pages of keys and values. */
#ifndef DECODE_CUH
#define DECODE_CUH

#include "engine.cuh"
#include "overlap.cuh"

#define INFINITE __int_as_float(0x7f800000)

/* ---- cp.async ---- */

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Copy 16 bytes to shared memory; unless `there`, write zeros and read nothing. */
__device__ __forceinline__ void copy16(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until at most N of the committed groups are incomplete. */
template <int N> __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- d += a b, a is 16 x 16, b is 16 x 8 ---- */

__device__ __forceinline__ void mma(float (&d)[4], unsigned a0, unsigned a1, unsigned a2,
                                    unsigned a3, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Load four 8 x 8 matrices of shared memory: lane i has the address of row i % 8 of matrix i /
 * 8. */
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void *row)
{
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(row))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(row))
                     : "memory");
}

/* ---- pages ---- */

constexpr int PAGE = 32; /* tokens */

/* A page has, for every layer, the keys and then the values of every kv head: PAGE rows of dim
 * numbers. */
struct Pages {
    bf16 *data;
    int layers, kv_heads, dim;
};

__device__ __forceinline__ bf16 *page_row(const Pages &p, int page, int layer, int values, int head,
                                          int token)
{
    size_t head_at = (((size_t)page * p.layers + layer) * 2 + values) * p.kv_heads + head;
    return p.data + (head_at * PAGE + token) * p.dim;
}

/* The rows of a step: the position of the new token (-1: an idle row), and the pages of each row's
 * context. */
struct Rows {
    const int *pos, *table;
    int ld; /* pages of a row of the table */
};

#endif
