// wgmma of halves: tiles come by cp.async into one stage while a warpgroup multiplies the other one.
// task: composed/mm_silu_f16
// expect: ok
#include <cuda_fp16.h>
//@ launch mm_silu<<<dim3(ceil_div(n, 128), ceil_div(m, 64)), 128>>>(x, weight, y, m, n, k)
typedef unsigned long long u64;
struct Stage {                      // rows of 128 bytes, whose chunks of 16 are exchanged by the row's number
    half x[64 * 64], w[2][64 * 64]; // rows of x; rows of two panels of 64 columns of the weight
};
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
// Copies up to 8 halves of a row to a chunk, and zeros behind them.
__device__ void copy(half *tile, int row, int chunk, const half *all, long long first, int left, int whole)
{
    unsigned to = at(tile + row * 64 + (chunk ^ row & 7) * 8);
    left = max(0, min(8, left));
    const half *from = left ? all + first : all;
    if (whole) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(left * 2)
                     : "memory");
    } else {
        union {
            half h[8];
            uint4 v;
        } u;
        for (int i = 0; i < 8; i++) u.h[i] = i < left ? from[i] : __float2half(0);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(u.v.x), "r"(u.v.y), "r"(u.v.z),
                     "r"(u.v.w)
                     : "memory");
    }
}
__device__ void fill(Stage *s, const half *x, const half *w, int row, int col, int l, int m, int n, int k)
{
    for (int e = threadIdx.x; e < 512; e += 128) {
        int r = e / 8, c = e % 8;
        copy(s->x, r, c, x, (long long)(row + r) * k + l + c * 8, row + r < m ? k - l - c * 8 : 0,
             k % 8 == 0);
    }
    for (int e = threadIdx.x; e < 1024; e += 128) {
        int r = e / 16, c = e % 16;
        copy(s->w[c / 8], r, c % 8, w, (long long)(l + r) * n + col + c * 8, l + r < k ? n - col - c * 8 : 0,
             n % 8 == 0);
    }
}
// d = (adds ? d : 0) + x w over 16 of k. The weight is transposed: its rows are those of k.
__device__ void multiply(float (&d)[64], const half *x, const half *w, int adds)
{
    u64 rows = 1ull << 62 | 64ull << 32;
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
          "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
          "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(rows | 1ull << 16 | at(x) >> 4), "l"(rows | 512ull << 16 | at(w) >> 4), "r"(adds));
}
extern "C" __global__ void mm_silu(const half *x, const half *weight, half *y, int m, int n, int k)
{
    __shared__ __align__(1024) Stage stage[2];
    int row = blockIdx.y * 64, col = blockIdx.x * 128, t = threadIdx.x;
    float d[64];
    fill(&stage[0], x, weight, row, col, 0, m, n, k);
    for (int l = 0, s = 0; l < k; l += 64, s ^= 1) {
        asm volatile("cp.async.wait_all;\nfence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; i++) multiply(d, stage[s].x + i * 16, stage[s].w[0] + i * 16 * 64, l + i);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (l + 64 < k) fill(&stage[s ^ 1], x, weight, row, col, l + 64, m, n, k);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    for (int i = 0; i < 64; i++) {
        int r = row + t / 32 * 16 + t % 32 / 4 + (i & 2) * 4, c = col + i / 4 * 8 + t % 4 * 2 + i % 2;
        float h = __half2float(__float2half(d[i]));
        if (r < m && c < n) y[(long long)r * n + c] = __float2half(h / (1 + __expf(-h)));
    }
}
