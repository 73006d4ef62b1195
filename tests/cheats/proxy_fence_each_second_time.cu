// Two stages of bulk stores; each second tile has no proxy fence.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: fence.proxy.async
//@ launch relu<<<64, 256>>>(x, y, n)
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[2][256];
    int t = threadIdx.x, k = 0;
    for (int first = blockIdx.x * 256; first < n; first += gridDim.x * 256, k++) {
        int i = first + t;
        float v = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
        if (first + 256 > n) {
            if (i < n) y[i] = v;
            continue;
        }
        if (t == 0) { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }
        __syncthreads();
        stage[k & 1][t] = v;
        if (k % 2 == 0) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
        __syncthreads();
        if (t == 0)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\ncp.async.bulk.commit_group;" : : "l"(y + first), "r"(at(stage[k & 1])) : "memory");
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
