// A bulk copy of what the whole block has stored; the proxy fence before the barrier is one thread's.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: fence.proxy.async
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    int t = threadIdx.x, first = blockIdx.x * 256, i = first + t;
    float v = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
    if (first + 256 > n) {
        if (i < n) y[i] = v;
        return;
    }
    stage[t] = v;
    if (t == 0) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" : : "l"(y + first), "r"(at(stage)) : "memory");
    }
}
