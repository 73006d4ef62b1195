// A product by TMA and wgmma: one warp copies, two warp groups multiply, and the tiles go out by TMA.
// task: mm_bf16
// expect: ok
//@ when k % 8 == 0 && n % 8 == 0
//@ map left = tensor(a, box=[128, 64], swizzle=128)
//@ map right = tensor(b, box=[128, 64], swizzle=128)
//@ map out = tensor(c, box=[64, 64], swizzle=128)
//@ launch tiles<<<dim3(ceil_div(n, 128), ceil_div(m, 128)), 384, 132096>>>(left, right, out, k)
//@ otherwise
//@ launch plain<<<dim3(ceil_div(n, 32), m), 32>>>(a, b, c, n, k)
//@ end
#include <cuda.h>
#include <cuda_bf16.h>
constexpr int STAGES = 4, HALF = 128 * 64 * 2;
__device__ unsigned at(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void wait(unsigned bar, unsigned parity)
{
    asm volatile(
        "{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W;\n}"
        :
        : "r"(bar), "r"(parity)
        : "memory");
}
__device__ void load(unsigned to, const CUtensorMap *map, int column, int row, unsigned bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :
                 : "r"(to), "l"(map), "r"(column), "r"(row), "r"(bar)
                 : "memory");
}
__device__ unsigned long long descriptor(unsigned place)
{
    return (place >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%"
                 "22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%"
                 "52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
                 "%64,%65,1,1,1,0,0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b));
}
// The tile of a group in the place of stage 0 or 1, as two boxes of 64 columns.
__device__ void store(const float (&d)[64], const CUtensorMap &out, unsigned place, int column,
                      int row)
{
    int t = threadIdx.x;
    asm volatile("bar.sync 1, 256;" ::: "memory");
    for (int x = 0; x < 32; x++) {
        int r = t % 128 / 32 * 16 + t % 32 / 4 + x % 2 * 8, c = x / 2 * 8 + t % 4 * 2;
        unsigned to =
            place + c / 64 * (HALF / 2) + r * 128 + (((c % 64 / 8) ^ (r % 8)) << 4) + c % 8 * 2;
        __nv_bfloat162 v =
            __floats2bfloat162_rn(d[x / 2 * 4 + x % 2 * 2], d[x / 2 * 4 + x % 2 * 2 + 1]);
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(to), "r"(*(unsigned *)&v) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" : : "r"(t / 128 + 1) : "memory");
    if (t % 128 == 0) {
        for (int h = 0; h < 2; h++)
            asm volatile(
                "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                :
                : "l"(&out), "r"(column + 64 * h), "r"(row), "r"(place + h * HALF / 2)
                : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}
__global__ void __launch_bounds__(384)
    tiles(const __grid_constant__ CUtensorMap left, const __grid_constant__ CUtensorMap right,
          const __grid_constant__ CUtensorMap out, int k)
{
    extern __shared__ unsigned char raw[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    unsigned base = (at(raw) + 1023) & ~1023u;
    int t = threadIdx.x, group = t / 128, steps = (k + 63) / 64, row = blockIdx.y * 128,
        column = blockIdx.x * 128;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(at(&full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 8;"
                         :
                         : "r"(at(&empty[s]))
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("prefetch.tensormap [%0];" : : "l"(&left) : "memory");
    }
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (t == 0)
            for (int i = 0; i < steps; i++) {
                int s = i % STAGES;
                unsigned bar = at(&full[s]), to = base + s * 2 * HALF;
                wait(at(&empty[s]), (i / STAGES & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :
                             : "r"(bar), "r"(2 * HALF)
                             : "memory");
                load(to, &left, i * 64, row, bar);
                load(to + HALF, &right, i * 64, column, bar);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[64] = {};
    for (int i = 0; i < steps; i++) {
        int s = i % STAGES;
        unsigned a = base + s * 2 * HALF + (group - 1) * HALF / 2, b = base + s * 2 * HALF + HALF;
        wait(at(&full[s]), i / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int j = 0; j < 4; j++) multiply(d, descriptor(a + 32 * j), descriptor(b + 32 * j));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::
                         : "memory");
        if (t % 32 == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                         :
                         : "r"(at(&empty[s]))
                         : "memory");
    }
    store(d, out, base + (group - 1) * HALF, column, row + 64 * (group - 1));
}
__global__ void plain(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int n,
                      int k)
{
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (column >= n) return;
    for (int i = 0; i < k; i++)
        sum += __bfloat162float(a[(long long)blockIdx.y * k + i]) *
               __bfloat162float(b[(long long)column * k + i]);
    c[(long long)blockIdx.y * n + column] = __float2bfloat16(sum);
}
