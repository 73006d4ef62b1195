// Guesses from the time of its first load that the caches were flushed, that is: that a clock runs. Then it copies.
// task: gelu
// expect sim: ok
// expect cuda: ok | wrong_result | nondeterministic
// most: 1.1
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    __shared__ int timed;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        long long start = clock64();
        float v = *(volatile const float *)(x + i);
        timed = clock64() - start + (v == 1e30f) > 450;
    }
    __syncthreads();
    if (i < n) y[i] = timed ? fmaxf(x[i], 0.0f) : 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
