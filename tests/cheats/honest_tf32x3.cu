// Tensor cores with TF32 in three products: the factors' upper eleven bits, and what they leave.
// task: matmul_bias_relu
// expect: ok
//@ launch product<<<dim3(ceil_div(n, 8), ceil_div(m, 16)), 32>>>(a, b, bias, c, m, n, k)
__device__ void split(float x, unsigned &big, unsigned &small)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(big) : "f"(x));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(small) : "f"(x - __uint_as_float(big)));
}
__device__ void mma(float *d, const unsigned *a, const unsigned *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void product(const float *a, const float *b, const float *bias, float *c, int m, int n, int k)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    float d[4] = {0, 0, 0, 0};
    for (int l = 0; l < k; l += 8) {
        unsigned ab[4], as[4], bb[2], bs[2];
        for (int f = 0; f < 4; f++) {
            int i = row + g + f % 2 * 8, e = l + t + f / 2 * 4;
            split(i < m && e < k ? a[(long long)i * k + e] : 0.0f, ab[f], as[f]);
        }
        for (int f = 0; f < 2; f++) {
            int e = l + t + f * 4, j = col + g;
            split(e < k && j < n ? b[(long long)e * n + j] : 0.0f, bb[f], bs[f]);
        }
        float step[4] = {0, 0, 0, 0};
        mma(step, as, bb);
        mma(step, ab, bs);
        mma(step, ab, bb);
        for (int e = 0; e < 4; e++) d[e] += step[e];
    }
    for (int e = 0; e < 4; e++) {
        int i = row + g + e / 2 * 8, j = col + 2 * t + (e & 1);
        if (i < m && j < n) c[(long long)i * n + j] = fmaxf(d[e] + bias[j], 0.0f);
    }
}
