// Sums in half precision where single is asked for.
// task: row_sum
// expect: wrong_result
#include <cuda_fp16.h>
//@ launch row_sum<<<ceil_div(rows, 64), 64>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    __half sum = __float2half(0.0f);
    for (int c = 0; c < cols; c++) sum = __hadd(sum, __float2half(x[(long long)r * cols + c]));
    y[r] = __half2float(sum);
}
