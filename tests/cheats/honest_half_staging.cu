// Tiles staged as two 16-bit halves of each float, packed in half2 and bfloat162, which lose nothing.
// task: transpose
// expect: ok
#include <cuda_bf16.h>
#include <cuda_fp16.h>
//@ launch transpose<<<dim3(ceil_div(cols, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ __nv_bfloat16 high[32][34];
    __shared__ __half low[32][34];
    for (int k = threadIdx.y; k < 32; k += 8) {
        int r = blockIdx.y * 32 + k, c = blockIdx.x * 32 + threadIdx.x;
        unsigned v = r < rows && c < cols ? __float_as_uint(x[r * cols + c]) : 0;
        high[k][threadIdx.x] = __ushort_as_bfloat16(v >> 16), low[k][threadIdx.x] = __ushort_as_half(v & 0xffff);
    }
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) {
        int c = blockIdx.x * 32 + k, r = blockIdx.y * 32 + threadIdx.x;
        unsigned v = (unsigned)__bfloat16_as_ushort(high[threadIdx.x][k]) << 16 | __half_as_ushort(low[threadIdx.x][k]);
        if (r < rows && c < cols) y[c * rows + r] = __uint_as_float(v);
    }
}
