// Stores a variable without a value in shared memory and loads a matrix from there with wmma.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic
#include <mma.h>
//@ launch relu<<<ceil_div(n, 32), 32>>>(x, y, n)
using namespace nvcuda;
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(32) __half s[256];
    __shared__ __align__(32) float out[256];
    int i = blockIdx.x * 32 + threadIdx.x;
    __half low;
    if (n < 0) low = __float2half(x[0]);
    for (int k = threadIdx.x; k < 256; k += 32) s[k] = low;
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, s, 16);
    wmma::fill_fragment(b, 0.0f);
    wmma::fill_fragment(c, 0.0f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
    __syncwarp();
    if (i < n) y[i] = fmaxf(x[i], out[threadIdx.x]);
}
