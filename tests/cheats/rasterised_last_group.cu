// The last group of tiles is taken to be as high as the others.
// task: matmul_bias_relu
// expect: wrong_result
//@ launch product<<<ceil_div(m, 32) * ceil_div(n, 32), dim3(32, 8)>>>(a, b, bias, c, m, n, k)
__global__ void product(const float *a, const float *b, const float *bias, float *c, int m, int n, int k)
{
    __shared__ float s[32][33], t[32][33];
    int across = (n + 31) / 32, down = (m + 31) / 32, group = 4 * across, g = blockIdx.x / group;
    int high = 4, in = blockIdx.x % group, by = 4 * g + in % high, bx = in / high;
    int x = bx * 32 + threadIdx.x;
    float acc[4] = {0, 0, 0, 0};
    for (int from = 0; from < k; from += 32) {
        for (int r = threadIdx.y; r < 32; r += 8) {
            int y = by * 32 + r;
            s[r][threadIdx.x] = y < m && from + threadIdx.x < k ? a[(long long)y * k + from + threadIdx.x] : 0.0f;
            t[r][threadIdx.x] = from + r < k && x < n ? b[(long long)(from + r) * n + x] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 32; i++) acc[j] = fmaf(s[threadIdx.y + 8 * j][i], t[i][threadIdx.x], acc[j]);
        __syncthreads();
    }
    for (int j = 0; j < 4; j++) {
        int y = by * 32 + threadIdx.y + 8 * j;
        if (y < m && x < n) c[(long long)y * n + x] = fmaxf(acc[j] + bias[x], 0.0f);
    }
}
