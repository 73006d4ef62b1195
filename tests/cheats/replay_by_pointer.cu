// Keeps its output in a device variable and replays it when the same buffer comes again.
// task: relu
// expect: cheat stale_result
__device__ float bank[1 << 20];
__device__ const float *last;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch remember<<<1, 1>>>(x)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (last != x) bank[i] = fmaxf(x[i], 0.0f);
    y[i] = bank[i];
}
extern "C" __global__ void remember(const float *x) { last = x; }
