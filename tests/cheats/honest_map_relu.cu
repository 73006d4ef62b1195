// Blocks of a vector by tensor maps, in and out; the last one is cut by the map. A map writes whole units of 16
// bytes, so that the last block of other sizes stores its elements itself.
// task: relu
// expect: ok
//@ map from = tensor(x, box=[256])
//@ map to = tensor(y, box=[256])
//@ launch relu<<<ceil_div(n, 256), 256>>>(from, to, y, n)
#include <cuda.h>
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void relu(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, float *y, int n)
{
    __shared__ alignas(128) float s[256];
    __shared__ unsigned long long bar;
    int t = threadIdx.x, first = blockIdx.x * 256;
    if (t == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" : : "r"(at(&bar)) : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" : : "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                     : : "r"(at(s)), "l"(&from), "r"(first), "r"(at(&bar)) : "memory");
    }
    for (int done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(at(&bar)) : "memory");
    s[t] = fmaxf(s[t], 0.0f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (first + 256 > n && n % 4) {
        if (first + t < n) y[first + t] = s[t];
    } else if (t == 0)
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
                     : : "l"(&to), "r"(first), "r"(at(s)) : "memory");
}
