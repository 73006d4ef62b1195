// Two stages of bulk copies: one thread fills a stage while the others work on the other one.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
enum { STAGE = 1024 };
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void fill(float *to, const float *from, unsigned bytes, unsigned long long *full)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(at(full)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(at(to)), "l"(from), "r"(bytes), "r"(at(full)) : "memory");
}
__device__ void await(unsigned long long *bar, int parity)
{
    for (int done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory");
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ __align__(128) float s[2][STAGE];
    __shared__ unsigned long long full[2], empty[2];
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x, head = (int)((16 - (size_t)row % 16) % 16 / 4), whole = cols > head ? (cols - head) / 4 * 4 : 0;
    int n = (whole + STAGE - 1) / STAGE;
    float sum = 0;
    if (t == 0) {
        for (int k = 0; k < 2; k++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(at(&full[k])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" : : "r"(at(&empty[k])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    for (int k = 0; k < 2 && k < n && t == 0; k++) fill(s[k], row + head + k * STAGE, min(STAGE, whole - k * STAGE) * 4, &full[k]);
    for (int k = 0; k < n; k++) {
        await(&full[k % 2], k / 2 & 1);
        for (int c = t; c < min(STAGE, whole - k * STAGE); c += 128) sum += s[k % 2][c];
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at(&empty[k % 2])) : "memory");
        if (t == 0 && k + 2 < n) {
            await(&empty[k % 2], k / 2 & 1);
            fill(s[k % 2], row + head + (k + 2) * STAGE, min(STAGE, whole - (k + 2) * STAGE) * 4, &full[k % 2]);
        }
    }
    for (int c = t; c < cols; c += 128) sum += c < head || c >= head + whole ? row[c] : 0.0f;
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (t % 32 == 0) part[t / 32] = sum;
    __syncthreads();
    if (t == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
