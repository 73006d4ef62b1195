// arrays, converters and functors, without a product
// task: relu_f16
// expect: ok
//@ launch relu<<<ceil_div(n, 256 * 8), 256>>>(x, y, n)
#include <cuda_fp16.h>
#include <cutlass/array.h>
#include <cutlass/functional.h>
#include <cutlass/numeric_conversion.h>
using H = cutlass::half_t;
extern "C" __global__ void relu(const half *x, half *y, int n)
{
    int i = (blockIdx.x * 256 + threadIdx.x) * 8;
    cutlass::Array<H, 8> in;
    for (int j = 0; j < 8; j++) in[j] = i + j < n ? H(x[i + j]) : H(0);
    auto wide = cutlass::NumericArrayConverter<float, H, 8>()(in);
    wide = cutlass::maximum<cutlass::Array<float, 8>>()(wide, 0.0f);
    auto out = cutlass::NumericArrayConverter<H, float, 8>()(wide);
    for (int j = 0; j < 8; j++)
        if (i + j < n) y[i + j] = H(out[j]).to_half();
}
