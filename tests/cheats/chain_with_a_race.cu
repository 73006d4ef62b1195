// Late blocks wait for one another, and race for where they store what they find: sampled blocks of the timed
// size could not run, so that the small launch stood for it.
// task: relu
// expect: race
//@ buffer int flag[2 * ceil_div(n, 1024)]
//@ buffer int seen[2 * ceil_div(n, 1024)]
//@ launch z<<<ceil_div(2 * ceil_div(n, 1024), 256), 256>>>(flag, 2 * ceil_div(n, 1024))
//@ launch r<<<ceil_div(n, 1024), 256>>>(x, y, flag, seen, n)
extern "C" __global__ void z(int *flag, int blocks)
{
    int k = blockIdx.x * 256 + threadIdx.x;
    if (k < blocks) flag[k] = 0;
}
extern "C" __global__ void r(const float *x, float *y, int *flag, int *seen, int n)
{
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        if (b > 600) { int v; do { v = atomicAdd(&flag[b - 1], 1); seen[v & 15] = v; } while (v < 1 << 20); }
        __threadfence();
        atomicAdd(&flag[b], 1 << 20);
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        int i = blockIdx.x * 1024 + k * 256 + threadIdx.x;
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
    }
}
