// One kernel per operator, as relu(matmul(a, b) + bias) runs eagerly: product, broadcast add, relu. The
// product is a 16x16 tile in shared memory, weaker than a vendor library's.
//@ buffer float product[m * n]
//@ buffer float sum[m * n]
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, product, m, n, k)
//@ launch add_bias<<<ceil_div(m * n, 512), 128>>>(product, bias, sum, m * n, n)
//@ launch relu<<<ceil_div(m * n, 512), 128>>>(sum, c, m * n)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        int ak = start + threadIdx.x, bk = start + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[(long long)row * k + ak] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = bk < k && col < n ? b[(long long)bk * n + col] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += as[threadIdx.y][l] * bs[l][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = sum;
}

// A broadcast operand has no common stride: four separate accesses a thread.
extern "C" __global__ void add_bias(const float *x, const float *bias, float *y, int count, int n)
{
    int first = blockIdx.x * 512 + threadIdx.x;
    for (int j = 0; j < 4; j++) {
        int i = first + j * 128;
        if (i < count) y[i] = x[i] + bias[i % n];
    }
}

extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        v.x = v.x > 0.0f ? v.x : 0.0f;
        v.y = v.y > 0.0f ? v.y : 0.0f;
        v.z = v.z > 0.0f ? v.z : 0.0f;
        v.w = v.w > 0.0f ? v.w : 0.0f;
        *reinterpret_cast<float4 *>(y + i) = v;
    } else {
        for (; i < n; i++) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
