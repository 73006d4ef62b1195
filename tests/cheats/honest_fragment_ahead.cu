// As CUTLASS does it: fragments come one step ahead and are converted at once, behind the last step too, where
// nobody has written; rows and columns outside of the matrices are not written either.
// task: matmul
// expect: ok
//@ launch product<<<dim3(ceil_div(n, 8), ceil_div(m, 16)), 32>>>(a, b, c, m, n, k)
__device__ void split(unsigned x, unsigned &big, unsigned &small)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(big) : "r"(x));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(small) : "f"(__uint_as_float(x) - __uint_as_float(big)));
}
__device__ void mma(float *d, const unsigned *a, const unsigned *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct Stage {
    float a[16][8], b[8][8];
};
struct Fragment {
    unsigned a[2][4], b[2][2]; // the upper bits, and what they leave
    __device__ void fetch(const Stage &s)
    {
        int lane = threadIdx.x;
        unsigned v[4], at = (unsigned)__cvta_generic_to_shared(&s.a[lane % 16][lane / 16 * 4]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at));
        for (int i = 0; i < 4; i++) split(v[i], a[0][i], a[1][i]);
        for (int i = 0; i < 2; i++) split(__float_as_uint(s.b[lane % 4 + 4 * i][lane / 4]), b[0][i], b[1][i]);
    }
};
__device__ void bring(Stage &s, const float *a, const float *b, int step, int m, int n, int k)
{
    int row = blockIdx.y * 16, col = blockIdx.x * 8, k0 = step * 8;
    for (int e = threadIdx.x; e < 128; e += 32)
        if (row + e / 8 < m) s.a[e / 8][e % 8] = k0 + e % 8 < k ? a[(long long)(row + e / 8) * k + k0 + e % 8] : 0.0f;
    for (int e = threadIdx.x; e < 64; e += 32)
        if (col + e % 8 < n) s.b[e / 8][e % 8] = k0 + e / 8 < k ? b[(long long)(k0 + e / 8) * n + col + e % 8] : 0.0f;
    __syncwarp();
}
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ __align__(16) Stage stages[4];
    int g = threadIdx.x / 4, t = threadIdx.x % 4, steps = (k + 7) / 8;
    float d[4] = {0, 0, 0, 0};
    Fragment now, next;
    bring(stages[0], a, b, 0, m, n, k);
    now.fetch(stages[0]);
    for (int s = 0; s < steps; s++) {
        if (s + 1 < steps) bring(stages[(s + 1) % 4], a, b, s + 1, m, n, k);
        next.fetch(stages[(s + 1) % 4]);
        float step[4] = {0, 0, 0, 0};
        mma(step, now.a[1], now.b[0]);
        mma(step, now.a[0], now.b[1]);
        mma(step, now.a[0], now.b[0]);
        for (int e = 0; e < 4; e++) d[e] += step[e];
        now = next;
    }
    for (int e = 0; e < 4; e++) {
        int i = blockIdx.y * 16 + g + e / 2 * 8, j = blockIdx.x * 8 + 2 * t + (e & 1);
        if (i < m && j < n) c[(long long)i * n + j] = d[e];
    }
}
