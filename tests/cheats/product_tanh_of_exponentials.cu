// tanh as a quotient of exponentials, which overflow for large sums.
// task: composed/mm_tanh
// expect: wrong_result
//@ launch k<<<dim3(ceil_div(n, 32), ceil_div(m, 32)), dim3(32, 8)>>>(x, weight, y, m, n, k)
__device__ float out(float v) { float e = expf(2 * v); return (e - 1) / (e + 1); }
__global__ void k(const float *x, const float *w, float *y, int m, int n, int k)
{
    __shared__ float a[32][33], b[32][33];
    int j = blockIdx.x * 32 + threadIdx.x;
    float s[4] = {0, 0, 0, 0};
    for (int from = 0; from < k; from += 32) {
        for (int r = threadIdx.y; r < 32; r += 8) {
            int i = blockIdx.y * 32 + r, e = from + threadIdx.x;
            a[r][threadIdx.x] = i < m && e < k ? x[(long long)i * k + e] : 0;
            b[r][threadIdx.x] = from + r < k && j < n ? w[(long long)(from + r) * n + j] : 0;
        }
        __syncthreads();
        for (int r = 0; r < 4; r++) for (int e = 0; e < 32; e++) s[r] += a[threadIdx.y + 8 * r][e] * b[e][threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        int i = blockIdx.y * 32 + threadIdx.y + 8 * r;
        if (i < m && j < n) y[(long long)i * n + j] = out(s[r]);
    }
}
