// Moves its elements as halves: right for small round numbers only.
// task: transpose
// expect: wrong_result
#include <cuda_fp16.h>
//@ launch transpose<<<dim3(ceil_div(cols, 128), rows), 128>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x;
    if (c < cols) y[c * rows + r] = __half2float(__float2half(x[r * cols + c]));
}
