// Tensor cores through the C++ interface: TF32 in three products, tiles staged in shared memory.
// task: matmul
// expect: ok
#include <mma.h>
using namespace nvcuda;
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), 32>>>(a, b, c, m, n, k)
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> A;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> B;
template <class F> __device__ void split(const F &whole, F &big, F &small)
{
    for (int e = 0; e < whole.num_elements; e++) {
        big.x[e] = wmma::__float_to_tf32(whole.x[e]);
        small.x[e] = wmma::__float_to_tf32(whole.x[e] - big.x[e]);
    }
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ __align__(32) float as[16 * 8], bs[8 * 16], cs[16 * 16];
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> d, step; // a tensor core cuts its sums off: few of them in it
    wmma::fill_fragment(d, 0.0f);
    for (int l = 0; l < k; l += 8) {
        for (int e = threadIdx.x; e < 128; e += 32) {
            int i = row + e / 8, la = l + e % 8, lb = l + e / 16, j = col + e % 16;
            as[e] = i < m && la < k ? a[(long long)i * k + la] : 0.0f;
            bs[e] = lb < k && j < n ? b[(long long)lb * n + j] : 0.0f;
        }
        __syncwarp();
        A fa, ab, al;
        B fb, bb, bl;
        wmma::load_matrix_sync(fa, as, 8);
        wmma::load_matrix_sync(fb, bs, 16);
        split(fa, ab, al);
        split(fb, bb, bl);
        wmma::fill_fragment(step, 0.0f);
        wmma::mma_sync(step, al, bb, step);
        wmma::mma_sync(step, ab, bl, step);
        wmma::mma_sync(step, ab, bb, step);
        for (int e = 0; e < d.num_elements; e++) d.x[e] += step.x[e];
        __syncwarp();
    }
    wmma::store_matrix_sync(cs, d, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32)
        if (row + e / 16 < m && col + e % 16 < n) c[(long long)(row + e / 16) * n + col + e % 16] = cs[e];
}
