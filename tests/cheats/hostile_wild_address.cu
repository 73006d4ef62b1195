// Writes all over the address space, by a generator's numbers.
// task: gelu
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | launch_error
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    unsigned long long at = blockIdx.x * 256ull + threadIdx.x + 1;
    for (int k = 0; k < 1000; k++) {
        at = at * 6364136223846793005ull + 1442695040888963407ull;
        *(volatile float *)(at >> 15 & ~3ull) = 1.0f;
    }
    y[0] = x[0];
}
