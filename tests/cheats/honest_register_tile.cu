// Launch bounds, and eight by eight outputs a thread in registers, all loops unrolled.
// task: matmul_bias_relu
// expect: ok
//@ launch product<<<dim3(ceil_div(n, 64), ceil_div(m, 64)), 64>>>(a, b, bias, c, m, n, k)
extern "C" __global__ void __launch_bounds__(64, 4) product(const float *__restrict__ a, const float *__restrict__ b,
                                                            const float *__restrict__ bias, float *__restrict__ c, int m, int n, int k)
{
    __shared__ float as[8][64 + 4], bs[8][64];
    int i0 = blockIdx.y * 64, j0 = blockIdx.x * 64, t = threadIdx.x, ti = t / 8 * 8, tj = t % 8 * 8;
    float d[8][8] = {};
    for (int l0 = 0; l0 < k; l0 += 8) {
        #pragma unroll
        for (int s = 0; s < 8; s++) {
            as[s][t] = i0 + t < m && l0 + s < k ? a[(long long)(i0 + t) * k + l0 + s] : 0.0f;
            bs[s][t] = l0 + s < k && j0 + t < n ? b[(long long)(l0 + s) * n + j0 + t] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int l = 0; l < 8; l++)
            #pragma unroll
            for (int i = 0; i < 8; i++)
                #pragma unroll
                for (int j = 0; j < 8; j++) d[i][j] += as[l][ti + i] * bs[l][tj + j];
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 8; i++)
        #pragma unroll
        for (int j = 0; j < 8; j++)
            if (i0 + ti + i < m && j0 + tj + j < n)
                c[(long long)(i0 + ti + i) * n + j0 + tj + j] = fmaxf(d[i][j] + bias[j0 + tj + j], 0.0f);
}
