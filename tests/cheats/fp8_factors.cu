// Rounds both factors to 8-bit floats.
// task: diag_matmul
// expect sim: wrong_result
// expect cuda: wrong_result
#include <cuda_fp8.h>
//@ launch scale<<<ceil_div(n * m, 256), 256>>>(d, b, c, n * m, m)
extern "C" __global__ void scale(const float *d, const float *b, float *c, int count, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = float(__nv_fp8_e4m3(d[i / m])) * float(__nv_fp8_e4m3(b[i]));
}
