// Takes every new address for a check and every known one for a timed run, where it does the first rows only.
// task: transpose
// expect: cheat stale_result
__device__ const float *known[64];
__device__ int count, repeated;
//@ launch look<<<1, 1>>>(x)
//@ launch transpose<<<dim3(ceil_div(cols, 32), rows), 32>>>(x, y, rows, cols)
extern "C" __global__ void look(const float *x)
{
    repeated = 0;
    for (int k = 0; k < count; k++) repeated |= known[k] == x;
    if (!repeated && count < 64) known[count++] = x;
}
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    if (c < cols && (!repeated || r < rows / 2)) y[c * rows + r] = x[r * cols + c];
}
