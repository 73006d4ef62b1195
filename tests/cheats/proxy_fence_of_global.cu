// The proxy fence is of global memory, the bulk copy reads shared memory.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: fence.proxy.async
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void begin(unsigned long long *bar)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(bar)) : "memory");
}
__device__ void bring(float *stage, const float *x, unsigned long long *bar, unsigned expected)
{
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];\n"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%2], %3;"
                     ::"r"(at(stage)), "l"(x), "r"(at(bar)), "r"(expected) : "memory");
    for (int done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(at(bar)) : "memory");
}
__device__ void store(float *y, const float *stage)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\ncp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::"l"(y), "r"(at(stage)) : "memory");
}
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    __shared__ unsigned long long bar;
    int t = threadIdx.x, first = blockIdx.x * 256, i = first + t;
    if (first + 256 > n) {
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
        return;
    }
    if (t == 0) { begin(&bar); asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
    __syncthreads();
    bring(stage, x + first, &bar, sizeof stage);
    stage[t] = fmaxf(stage[t], 0.0f);
    asm volatile("fence.proxy.async.global;" ::: "memory");
    __syncthreads();
    if (t == 0) store(y + first, stage);
}
