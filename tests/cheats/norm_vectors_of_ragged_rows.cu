// Vectors of four where the columns are even.
// task: layernorm
// expect sim: out_of_bounds
// expect cuda: wrong_result | launch_error | out_of_bounds
//@ launch norm<<<rows, 256>>>(x, gamma, beta, y, cols)
template <int V> __device__ void run(const float *x, const float *g, const float *b, float *y, int cols, float *s)
{
    float sum = 0, count = 0, mean, var = 0;
    for (int i = threadIdx.x * V; i < cols; i += 256 * V)
        for (int k = 0; k < V; k++) sum += x[i + k];
    for (int h = 16; h; h /= 2) sum += __shfl_xor_sync(~0u, sum, h);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 8; i++) sum += s[i];
    __syncthreads();
    mean = sum / cols;
    for (int i = threadIdx.x * V; i < cols; i += 256 * V)
        for (int k = 0; k < V; k++) { float d = x[i + k] - mean; var += d * d; }
    for (int h = 16; h; h /= 2) var += __shfl_xor_sync(~0u, var, h);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = var;
    __syncthreads();
    var = 0;
    for (int i = 0; i < 8; i++) var += s[i];
    float r = rsqrtf(var / cols + 1e-5f);
    if constexpr (V == 4) {
        for (int i = threadIdx.x * 4; i < cols; i += 1024) {
            float4 v = *(const float4 *)(x + i), w = *(const float4 *)(g + i), o = *(const float4 *)(b + i);
            *(float4 *)(y + i) = make_float4((v.x - mean) * r * w.x + o.x, (v.y - mean) * r * w.y + o.y,
                                             (v.z - mean) * r * w.z + o.z, (v.w - mean) * r * w.w + o.w);
        }
    } else {
        for (int i = threadIdx.x; i < cols; i += 256) y[i] = (x[i] - mean) * r * g[i] + b[i];
    }
    (void)count;
}
__global__ void norm(const float *x, const float *g, const float *b, float *y, int cols)
{
    __shared__ float s[8];
    long long at = (long long)blockIdx.x * cols;
    if (cols % 2 == 0)
        run<4>(x + at, g, b, y + at, cols, s);
    else
        run<1>(x + at, g, b, y + at, cols, s);
}
