// Blocks of a cluster read a bulk copy when the mbarrier of another one has ended its phase.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | out_of_bounds | launch_error | timeout
// says sim: has not waited for its mbarrier
//@ launch relu<<<2 * ceil_div(n, 4096), 256>>>(x, y, n)
#include <cstdint>
extern "C" __global__ void __cluster_dims__(2, 1, 1) relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float tile[2][1024];
    __shared__ uint64_t landed[2];
    unsigned at = (unsigned)__cvta_generic_to_shared(landed), to = (unsigned)__cvta_generic_to_shared(tile);
    int base = blockIdx.x * 2048, whole = max(0, min(2, (n - base) / 1024)), t = threadIdx.x;
    if (!t) {
        for (int k = 0; k < 2; k++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at + 8 * k));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (!t)
        for (int k = 0; k < whole; k++) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(at + 8 * k) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                         ::"r"(to + 4096 * k), "l"(x + base + 1024 * k), "r"(at + 8 * k) : "memory");
        }
    if (whole) {
        int last = whole - 1, done = 0;
        while (!done)
            asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                         "selp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at + 8 * last) : "memory");
    }
    for (int i = t; i < 2048 && base + i < n; i += 256)
        y[base + i] = fmaxf(i < 1024 * whole ? tile[i / 1024][i % 1024] : x[base + i], 0.0f);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
