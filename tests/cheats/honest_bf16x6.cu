// Tensor cores in full precision: each float as three bfloat16 of eight bits, and the six products that matter.
// task: matmul
// expect: ok
#include <cuda_bf16.h>
//@ launch matmul<<<dim3(ceil_div(n, 8), ceil_div(m, 16)), 32>>>(a, b, c, m, n, k)
struct Split { unsigned part[3]; };
__device__ Split split(float lo, float hi)
{
    Split s;
    for (int p = 0; p < 3; p++) {
        __nv_bfloat162 v = __floats2bfloat162_rn(lo, hi);
        s.part[p] = *(unsigned *)&v;
        lo -= __low2float(v), hi -= __high2float(v);
    }
    return s;
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto at = [&](int i, int l) { return i < m && l < k ? a[(long long)i * k + l] : 0.0f; };
    auto bt = [&](int l, int j) { return l < k && j < n ? b[(long long)l * n + j] : 0.0f; };
    float d[4] = {0, 0, 0, 0};
    for (int l = 0; l < k; l += 16) {
        Split fa[4], fb[2];
        for (int f = 0; f < 4; f++) {
            int i = row + g + f % 2 * 8, e = l + t * 2 + f / 2 * 8;
            fa[f] = split(at(i, e), at(i, e + 1));
        }
        for (int f = 0; f < 2; f++) fb[f] = split(bt(l + t * 2 + f * 8, col + g), bt(l + t * 2 + f * 8 + 1, col + g));
        float step[4] = {0, 0, 0, 0}; // a tensor core cuts its sums off: few of them in it, the others outside
        for (int p = 2; p >= 0; p--)
            for (int q = 2 - p; q >= 0; q--)
                asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : "+f"(step[0]), "+f"(step[1]), "+f"(step[2]), "+f"(step[3])
                    : "r"(fa[0].part[p]), "r"(fa[1].part[p]), "r"(fa[2].part[p]), "r"(fa[3].part[p]), "r"(fb[0].part[q]),
                      "r"(fb[1].part[q]));
        for (int e = 0; e < 4; e++) d[e] += step[e];
    }
    for (int e = 0; e < 4; e++) {
        int i = row + g + e / 2 * 8, j = col + 2 * t + (e & 1);
        if (i < m && j < n) c[(long long)i * n + j] = d[e];
    }
}
