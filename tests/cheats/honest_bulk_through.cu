// Bulk copies in and out: no thread writes what the second one reads.
// task: relu
// expect: ok
#include <cuda/barrier>
//@ buffer float copy[n]
//@ launch pass<<<ceil_div(n, 256), 256>>>(x, copy, n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(copy, y, n)
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
__global__ void pass(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    __shared__ unsigned long long bar;
    int t = threadIdx.x, first = blockIdx.x * 256, i = first + t;
    if (first + 256 > n) {
        if (i < n) y[i] = x[i];
        return;
    }
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" : : "r"(at(&bar)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" : : "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" : : "r"(at(stage)), "l"(x + first), "r"(at(&bar)) : "memory");
        for (int done = 0; !done;)
            asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : "l"(y + first), "r"(at(stage)) : "memory");
    }
}
