// The tanh approximation where the exact form is asked for.
// task: gelu
// expect: wrong_result
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] * (1.0f + tanhf(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
