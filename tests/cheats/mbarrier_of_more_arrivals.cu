// An mbarrier expects two arrivals and gets one.
// task: relu
// expect: timeout
// says sim: 1 of 2 arrivals are missing
//@ buffer float tmp[n]
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, tmp, y, n)
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void relu(const float *x, float *tmp, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    __shared__ unsigned long long bar;
    int t = threadIdx.x, first = blockIdx.x * 256, i = first + t;
    if (first + 256 > n) {
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
        return;
    }
    tmp[first + t] = fmaxf(x[first + t], 0.0f);
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;\nfence.mbarrier_init.release.cluster;" : : "r"(at(&bar)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" : : "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" : : "r"(at(stage)), "l"(tmp + first), "r"(at(&bar)) : "memory");
    }
    for (int done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at(&bar)) : "memory");
    y[first + 255 - t] = stage[255 - t];
}
