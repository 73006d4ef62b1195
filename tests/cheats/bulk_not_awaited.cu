// Reads what a bulk copy brings without a wait for its mbarrier.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | out_of_bounds | launch_error | timeout
// says sim: has not waited for its mbarrier
//@ launch relu<<<ceil_div(n, 2048), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(128) float s[2048];
    __shared__ unsigned long long bar;
    int first = blockIdx.x * 2048, count = min(2048, n - first) & ~3, t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(s), b = (unsigned)__cvta_generic_to_shared(&bar);
    for (int i = t; i < 2048; i += 256) s[i] = 0;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" : : "r"(b) : "memory");
    __syncthreads();
    if (t == 0 && count) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(b), "r"(count * 4) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     : : "r"(at), "l"(x + first), "r"(count * 4), "r"(b) : "memory");
    }
    for (int done = count == 0; !done && t < 32;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(b) : "memory");
    for (int i = t; i < count; i += 256) s[i] = fmaxf(s[i], 0.0f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0 && count) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;"
                     : : "l"(y + first), "r"(at), "r"(count * 4) : "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    int i = first + count + t;
    if (t < 4 && i < min(n, first + 2048)) y[i] = fmaxf(x[i], 0.0f);
}
