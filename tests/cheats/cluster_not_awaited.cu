// Reads the other block's sum with a barrier of the own block alone.
// task: residual_rmsnorm
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | launch_error | out_of_bounds | timeout
// says sim: with no cluster barrier between
//@ launch rmsnorm<<<rows * 2, 128>>>(x, residual, weight, y, cols)
__device__ void sync()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ float of_rank(const float *p, int rank)
{
    float v;
    asm volatile("{\n.reg .b32 to;\nmapa.shared::cluster.u32 to, %1, %2;\nld.shared::cluster.f32 %0, [to];\n}"
                 : "=f"(v) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank) : "memory");
    return v;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    rmsnorm(const float *x, const float *residual, const float *weight, float *y, int cols)
{
    __shared__ float part[4], sum;
    sync();
    long long row = (long long)(blockIdx.x / 2) * cols;
    int half = blockIdx.x % 2;
    float s = 0;
    for (int c = half * 128 + threadIdx.x; c < cols; c += 256) {
        float h = x[row + c] + residual[row + c];
        s += h * h;
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) sum = part[0] + part[1] + part[2] + part[3];
    __syncthreads();
    float f = rsqrtf((of_rank(&sum, 0) + of_rank(&sum, 1)) / cols + 1e-6f);
    for (int c = half * 128 + threadIdx.x; c < cols; c += 256)
        y[row + c] = (x[row + c] + residual[row + c]) * f * weight[c];
    sync();
}
