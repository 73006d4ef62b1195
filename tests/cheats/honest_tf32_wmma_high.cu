// TF32 by wmma, through shared memory, where cuBLAS may use it too.
// task: matmul
// precision: high
// expect: ok
#include <mma.h>
using namespace nvcuda;
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), 32>>>(a, b, c, m, n, k)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float at[16 * 8], bt[8 * 16], out[256];
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> d;
    wmma::fill_fragment(d, 0.0f);
    for (int l = 0; l < k; l += 8) {
        for (int e = threadIdx.x; e < 128; e += 32) {
            int i = row + e / 8, p = l + e % 8, q = l + e / 16, j = col + e % 16;
            at[e] = wmma::__float_to_tf32(i < m && p < k ? a[(long long)i * k + p] : 0.0f);
            bt[e] = wmma::__float_to_tf32(q < k && j < n ? b[(long long)q * n + j] : 0.0f);
        }
        __syncwarp();
        wmma::load_matrix_sync(x, at, 8);
        wmma::load_matrix_sync(y, bt, 16);
        wmma::mma_sync(d, x, y, d);
        __syncwarp();
    }
    wmma::store_matrix_sync(out, d, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32)
        if (row + e / 16 < m && col + e % 16 < n) c[(long long)(row + e / 16) * n + col + e % 16] = out[e];
}
