// Tensor cores read float32 as TF32, which truncates the factors, where cuBLAS may use TF32 too.
// task: matmul
// precision: high
// expect: ok
//@ launch matmul<<<dim3(ceil_div(n, 8), ceil_div(m, 16)), 32>>>(a, b, c, m, n, k)
__device__ unsigned tf32(float x)
{
    return __float_as_uint(x);
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto at = [&](int i, int l) { return tf32(i < m && l < k ? a[(long long)i * k + l] : 0.0f); };
    auto bt = [&](int l, int j) { return tf32(l < k && j < n ? b[(long long)l * n + j] : 0.0f); };
    float d[4] = {0, 0, 0, 0};
    for (int l = 0; l < k; l += 8)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(at(row + g, l + t)), "r"(at(row + g + 8, l + t)), "r"(at(row + g, l + t + 4)), "r"(at(row + g + 8, l + t + 4)),
              "r"(bt(l + t, col + g)), "r"(bt(l + t + 4, col + g)));
    for (int e = 0; e < 4; e++) {
        int i = row + g + (e / 2) * 8, j = col + 2 * t + (e & 1);
        if (i < m && j < n) c[(long long)i * n + j] = d[e];
    }
}
