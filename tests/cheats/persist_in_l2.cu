// Asks the L2 to keep its input for the next run, in place of what is there to flush it.
// task: row_sum
// expect: ok
// most: 1.3
//@ launch row_sum<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[8];
    unsigned long long keep;
    float s = 0;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + (long long)blockIdx.x * cols + c), "l"(keep));
        s += v;
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < 8; k++) s += part[k];
    y[blockIdx.x] = s;
}
