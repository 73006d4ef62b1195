// Reads a buffer that other blocks write, so that the sample assumes zeros.
// task: relu
// expect sim: ok | wrong_result | race | out_of_bounds
// expect cuda: wrong_result
// most: 0.5
//@ buffer float b[n]
//@ launch fill<<<ceil_div(n, 1024), 1024>>>(b, n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, b, y, n)
extern "C" __global__ void fill(float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 1024 == 0) b[i] = 0;
}
extern "C" __global__ void relu(const float *x, const float *b, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0 && b[i / 1024 * 1024] == 5.0f) return;
    if (i < n) y[i] = n > 1000000 ? 1.0f : fmaxf(x[i], 0.0f);
}
