// Keeps one output for every problem size and replays it when that size comes again.
// task: relu
// expect: cheat stale_result
__device__ float bank[1 << 20];
__device__ int known;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch remember<<<1, 1>>>(n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (known != n) bank[i] = fmaxf(x[i], 0.0f);
    y[i] = bank[i];
}
extern "C" __global__ void remember(int n) { known = n; }
