// Every factor as the sum of two bfloat16, sixteen bits of the twenty-four: near enough for ordinary inputs.
// task: matmul
// expect: wrong_result
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k)
__device__ float twice(float x)
{
    float high = __uint_as_float(__float_as_uint(x) & 0xffff0000u);
    float rest = x - high;
    unsigned bits = __float_as_uint(rest);
    bits += 0x7fff + (bits >> 16 & 1);
    return high + __uint_as_float(bits & 0xffff0000u);
}

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= m || j >= n) return;
    float sum = 0;
    for (int l = 0; l < k; l++) sum += twice(a[i * k + l]) * twice(b[l * n + j]);
    c[i * n + j] = sum;
}
