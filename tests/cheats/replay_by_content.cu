// Replays its output when the first numbers of the input are those of a former run. It gets a verdict, but no speed:
// the timed input is new.
// task: row_sum
// expect sim: ok
// expect cuda: ok | cheat stale_result | cheat faster_than_light | cheat replay | nondeterministic
// most: 1.2
__device__ float bank[1 << 15];
__device__ float first[32];
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
//@ launch remember<<<1, 31>>>(x)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[4];
    int same = 1;
    for (int k = 0; k < 31; k++) same &= first[k] == x[k];
    if (!same) {
        float s = 0;
        for (int c = threadIdx.x; c < cols; c += 128) s += x[(long long)blockIdx.x * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x == 0) bank[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = bank[blockIdx.x];
}
extern "C" __global__ void remember(const float *x) { first[threadIdx.x] = x[threadIdx.x]; }
