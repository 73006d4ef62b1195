// The first launch leaves out rows of a buffer that the second one reads, where there are many.
// task: softmax
// expect: wrong_result
// says sim: that no block of any launch has written
//@ buffer float top[rows]
//@ launch tops<<<min(rows, 4000), 256>>>(x, top, cols)
//@ launch softmax<<<rows, 256>>>(x, top, y, cols)
__device__ float all(float v, bool is_max)
{
    __shared__ float part[8];
    for (int d = 16; d; d /= 2) {
        float o = __shfl_xor_sync(~0u, v, d);
        v = is_max ? fmaxf(v, o) : v + o;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int i = 1; i < 8; i++) v = is_max ? fmaxf(v, part[i]) : v + part[i];
    return v;
}
extern "C" __global__ void tops(const float *x, float *top, int cols)
{
    float m = -INFINITY;
    x += (long long)blockIdx.x * cols;
    for (int i = threadIdx.x; i < cols; i += 256) m = fmaxf(m, x[i]);
    m = all(m, true);
    if (threadIdx.x == 0) top[blockIdx.x] = m;
}
extern "C" __global__ void softmax(const float *x, const float *top, float *y, int cols)
{
    float m = top[blockIdx.x], s = 0.0f;
    x += (long long)blockIdx.x * cols;
    y += (long long)blockIdx.x * cols;
    for (int i = threadIdx.x; i < cols; i += 256) s += expf(x[i] - m);
    s = all(s, false);
    for (int i = threadIdx.x; i < cols; i += 256) y[i] = expf(x[i] - m) / s;
}
