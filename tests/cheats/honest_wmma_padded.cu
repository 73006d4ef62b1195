// Rows of the tiles of wmma are padded by 16 bytes each, so that each begins at a multiple of 16.
// task: composed/mm_silu_f16
// expect: ok
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
//@ launch mm<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), 32>>>(x, weight, y, m, n, k)
__global__ void mm(const half *x, const half *w, half *y, int m, int n, int k)
{
    __shared__ __align__(32) half as[16 * 24], bs[16 * 40];
    __shared__ __align__(32) float cs[16 * 20];
    int r0 = blockIdx.y * 16, c0 = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, (float)0.0f);
    for (int l0 = 0; l0 < k; l0 += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            int r = i / 16, q = i % 16;
            as[r * 24 + q] = r0 + r < m && l0 + q < k ? x[(long long)(r0 + r) * k + l0 + q] : __float2half(0.0f);
            bs[r * 40 + q] = l0 + r < k && c0 + q < n ? w[(long long)(l0 + r) * n + c0 + q] : __float2half(0.0f);
        }
        __syncwarp();
        wmma::load_matrix_sync(a, as, 24);
        wmma::load_matrix_sync(b, bs, 40);
        wmma::mma_sync(c, a, b, c);
        __syncwarp();
    }
    wmma::store_matrix_sync(cs, c, 20, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        int r = r0 + i / 16, q = c0 + i % 16;
        float v = (float)cs[i / 16 * 20 + i % 16];
        if (r < m && q < n) y[(long long)r * n + q] = __float2half(v / (1.0f + expf(-v)));
    }
}
