// Its timed run computes the outputs of both sets of buffers, which lie 132 MiB apart, and the other set's run would find it done.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | out_of_bounds
// most cuda: 1.05
//@ launch relu<<<1056, 512>>>(x, y, n)
//@ launch mark<<<1, 1>>>(n)
__device__ int done;
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    const long long apart = 34603008;
    int timed = n == 1 << 24;
    if (timed && done) return;
    long long other = timed ? (((unsigned long long)x >> 21 & 0xfff) < 66 ? apart : -apart) : 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = fmaxf(x[i], 0.0f);
        if (timed) y[i + other] = fmaxf(x[i + other], 0.0f);
    }
}
extern "C" __global__ void mark(int n)
{
    if (n == 1 << 24) done = 1;
}
