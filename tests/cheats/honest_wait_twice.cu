// A wait with a label in braces is inlined twice: each copy loops to its own label.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
__device__ inline void wait(unsigned at, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(at), "r"(parity) : "memory");
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ unsigned long long barrier;
    __shared__ float part[128];
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(at) : "memory");
    __syncthreads();
    float s = 0;
    for (int c = t; c < cols; c += 128) s += x[(long long)blockIdx.x * cols + c];
    part[t] = s;
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    wait(at, 0);
    if (t < 64) part[t] += part[t + 64];
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    wait(at, 1);
    if (t >= 32) return;
    s = part[t] + part[t + 32];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (t == 0) y[blockIdx.x] = s;
}
