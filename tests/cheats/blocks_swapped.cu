// The last block does the first rows, and blocks before it the last ones: those in the middle are left out.
// task: gelu
// expect: wrong_result
// says: never written
//@ launch gelu<<<min(ceil_div(n, 1024), 3000), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int blocks = (n + 1023) / 1024, b = blockIdx.x * 2 < gridDim.x ? blockIdx.x : blocks - gridDim.x + blockIdx.x;
    for (int k = 0; k < 4; k++) {
        int i = b * 1024 + k * 256 + threadIdx.x;
        if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
    }
}
