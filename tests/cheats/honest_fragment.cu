// Stores a variable without a value in shared memory, a matrix over it with wmma, and loads that.
// task: relu
// expect: ok
#include <mma.h>
//@ launch relu<<<ceil_div(n, 32), 32>>>(x, y, n)
using namespace nvcuda;
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(32) float s[256];
    int i = blockIdx.x * 32 + threadIdx.x;
    float low;
    if (n < 0) low = x[0];
    for (int k = threadIdx.x; k < 256; k += 32) s[k] = low;
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::store_matrix_sync(s, c, 16, wmma::mem_row_major);
    __syncwarp();
    wmma::load_matrix_sync(c, s, 16, wmma::mem_row_major);
    __syncwarp();
    if (i < n) y[i] = fmaxf(x[i], s[threadIdx.x] + c.x[0]);
}
