// Half of a block arrives at a barrier and goes on; the other half waits there for the statistics that it has left.
// task: layernorm
// expect: ok
//@ launch layernorm<<<rows, 128>>>(x, gamma, beta, y, cols)
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    __shared__ float moments[2], part[2];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    if (t < 64) {
        float s = 0, mean;
        for (int c = t; c < cols; c += 64) s += row[c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (t % 32 == 0) part[t / 32] = s;
        asm volatile("bar.sync 2, 64;" ::: "memory");
        mean = (part[0] + part[1]) / cols;
        asm volatile("bar.sync 2, 64;" ::: "memory");
        s = 0;
        for (int c = t; c < cols; c += 64) s += (row[c] - mean) * (row[c] - mean);
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (t % 32 == 0) part[t / 32] = s;
        asm volatile("bar.sync 2, 64;" ::: "memory");
        if (t == 0) moments[0] = mean, moments[1] = rsqrtf((part[0] + part[1]) / cols + 1e-5f);
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        return;
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    for (int c = t - 64; c < cols; c += 64) y[(long long)blockIdx.x * cols + c] = (row[c] - moments[0]) * moments[1] * gamma[c] + beta[c];
}
