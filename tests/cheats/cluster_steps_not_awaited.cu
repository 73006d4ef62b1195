// Two blocks of a cluster go through a row by steps, and do not wait for what the other one sends in a step.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | launch_error | out_of_bounds | timeout
// says sim: with no cluster barrier between
//@ launch row_sum<<<rows * 2, 128>>>(x, y, cols)
static __device__ void send(float *at, int rank, float value)
{
    asm volatile("{\n\t.reg .b32 to;\n\tmapa.shared::cluster.u32 to, %0, %1;\n\t"
                 "st.shared::cluster.f32 [to], %2;\n\t}" ::"r"((unsigned)__cvta_generic_to_shared(at)), "r"(rank), "f"(value) : "memory");
}
static __device__ void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
static __device__ void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) row_sum(const float *x, float *y, int cols)
{
    __shared__ float sums[2][8];
    const int rank = blockIdx.x % 2, part = rank * 4 + threadIdx.x / 32;
    const float *row = x + (long long)(blockIdx.x / 2) * cols;
    float total = 0;
    arrive();
    wait();
    for (int first = 0, t = 0; first < cols; first += 1024, t++) {
        float s = 0;
        for (int c = first + rank * 128 + threadIdx.x; c < cols && c < first + 1024; c += 256) s += row[c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x % 32 < 2) send(&sums[t % 2][part], threadIdx.x % 32, s);
        __syncthreads();
        for (int i = 0; i < 8; i++) total += sums[t % 2][i];
    }
    arrive();
    wait();
    if (!rank && !threadIdx.x) y[blockIdx.x / 2] = total;
}
