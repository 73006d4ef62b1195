// Fills a table in its first launches and finds it filled when it is timed. The timed run starts from a module
// loaded again, so it pays for the table: compare with warm_table_paid in tests/shell/ranking.t.
// task: gelu
// expect: ok
__device__ float table[1 << 16];
__device__ int ready;
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch fill<<<256, 256>>>()
//@ launch remember<<<1, 1>>>()
extern "C" __global__ void fill()
{
    if (ready) return;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < 20; k++) s += erff(i * 1e-6f * k);
    table[i] = s * 0.0f;
}
extern "C" __global__ void remember() { ready = 1; }
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f)) + table[i & 65535];
}
