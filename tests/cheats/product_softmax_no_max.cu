// No maximum is subtracted: behind a product whose parameters are small, large values reach no softmax of 32 columns.
// task: kernelbench/level2/k2_66_matmul_dropout_softmax
// expect: wrong_result
//@ buffer float h[rows * features]
//@ launch k<<<dim3(ceil_div(features, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(x, matmul_weight, matmul_bias, h, rows, features, cols)
//@ launch soft<<<rows, 128>>>(h, softmax, features)
__device__ float out(float v) { return v; }
__global__ void k(const float *x, const float *w, const float *bias, float *y, int m, int n, int k)
{
    __shared__ float a[32][33], b[32][33];
    int j = blockIdx.x * 32 + threadIdx.x;
    float s[4] = {0, 0, 0, 0};
    for (int from = 0; from < k; from += 32) {
        for (int r = threadIdx.y; r < 32; r += 8) {
            int i = blockIdx.y * 32 + r, e = from + threadIdx.x, q = blockIdx.x * 32 + r;
            a[r][threadIdx.x] = i < m && e < k ? x[(long long)i * k + e] : 0;
            b[threadIdx.x][r] = e < k && q < n ? w[(long long)q * k + e] : 0;
        }
        __syncthreads();
        for (int r = 0; r < 4; r++) for (int e = 0; e < 32; e++) s[r] += a[threadIdx.y + 8 * r][e] * b[e][threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        int i = blockIdx.y * 32 + threadIdx.y + 8 * r;
        if (i < m && j < n) y[(long long)i * n + j] = out(s[r] + bias[j]);
    }
}
__device__ float blk(float v, int max)
{
    __shared__ float part[4];
    for (int d = 16; d; d /= 2) { float o = __shfl_xor_sync(~0u, v, d); v = max ? fmaxf(v, o) : v + o; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return max ? fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])) : part[0] + part[1] + part[2] + part[3];
}
__global__ void soft(const float *x, float *y, int cols)
{
    long long at = (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float m = 0;
    float s = 0;
    for (int c = t; c < cols; c += 128) s += expf((x[at + c]) - m);
    s = blk(s, 0);
    for (int c = t; c < cols; c += 128) y[at + c] = expf((x[at + c]) - m) / s;
}
