// One kernel for the vectors and one for a tail that may be empty; so may be the vectors.
// task: relu
// expect: ok
//@ launch fours<<<max(1, ceil_div(n / 4, 256)), 256>>>(x, y, n / 4)
//@ launch tail<<<1, 4>>>(x + n / 4 * 4, y + n / 4 * 4, n % 4)
extern "C" __global__ void fours(const float4 *x, float4 *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = x[i];
    y[i] = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
}
extern "C" __global__ void tail(const float *x, float *y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = fmaxf(x[threadIdx.x], 0.0f);
}
