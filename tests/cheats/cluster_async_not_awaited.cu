// Reads the sum that the other block sends with st.async and does not wait for the mbarrier.
// task: residual_rmsnorm
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | launch_error | out_of_bounds | timeout
//@ launch rmsnorm<<<rows * 2, 128>>>(x, residual, weight, y, cols)
__device__ unsigned mapped(const void *p, unsigned rank)
{
    unsigned at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
    return at;
}

__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    rmsnorm(const float *x, const float *residual, const float *weight, float *y, int cols)
{
    __shared__ float part[4], other;
    __shared__ unsigned long long bar;
    long long row = (long long)(blockIdx.x / 2) * cols;
    int half = blockIdx.x % 2;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(b)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4;" ::"r"(b) : "memory");
    }
    meet();
    float s = 0;
    for (int c = half * 128 + threadIdx.x; c < cols; c += 256) {
        float h = x[row + c] + residual[row + c];
        s += h * h;
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    float sum = part[0] + part[1] + part[2] + part[3];
    if (threadIdx.x == 0)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                         mapped(&other, half ^ 1)),
                     "f"(sum), "r"(mapped(&bar, half ^ 1))
                     : "memory");
    __syncthreads();
    float f = rsqrtf((half ? other + sum : sum + other) / cols + 1e-6f);
    for (int c = half * 128 + threadIdx.x; c < cols; c += 256)
        y[row + c] = (x[row + c] + residual[row + c]) * f * weight[c];
    meet();
}
