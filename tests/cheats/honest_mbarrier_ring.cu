// A producer warp and consumers that pass two stages between them by mbarriers, full and empty.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 160>>>(x, y, cols)
__device__ void wait(unsigned bar, int parity)
{
    for (int done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}
__device__ void arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(bar) : "memory"); }
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float stage[2][128], part[4];
    __shared__ __align__(8) unsigned long long bars[4];
    unsigned full = (unsigned)__cvta_generic_to_shared(bars), empty = full + 16;
    const float *row = x + (long long)blockIdx.x * cols;
    if (threadIdx.x < 2) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" : : "r"(full + 8 * threadIdx.x));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" : : "r"(empty + 8 * threadIdx.x));
    }
    __syncthreads();
    int steps = (cols + 127) / 128, t = threadIdx.x - 32;
    float s = 0;
    for (int k = 0; k < steps; k++) {
        int slot = k & 1, turn = k / 2 & 1;
        if (t < 0) {
            wait(empty + 8 * slot, turn ^ 1);
            for (int e = threadIdx.x; e < 128; e += 32) stage[slot][e] = k * 128 + e < cols ? row[k * 128 + e] : 0.0f;
            arrive(full + 8 * slot);
        } else {
            wait(full + 8 * slot, turn);
            s += stage[slot][t];
            arrive(empty + 8 * slot);
        }
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (t >= 0 && t % 32 == 0) part[t / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
