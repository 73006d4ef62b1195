// One kernel per operator, as h = x + residual; h * rsqrt(h.pow(2).mean(-1) + eps) * weight runs eagerly:
// add, pow, mean, add eps, rsqrt, multiply by the row's factor, multiply by the weight.
//@ buffer float h[rows * cols]
//@ buffer float square[rows * cols]
//@ buffer float mean[rows]
//@ buffer float shifted[rows]
//@ buffer float factor[rows]
//@ buffer float normed[rows * cols]
//@ launch add<<<ceil_div(rows * cols, 512), 128>>>(x, residual, h, rows * cols)
//@ launch pow2<<<ceil_div(rows * cols, 512), 128>>>(h, square, rows * cols)
//@ launch row_mean<<<rows, 256>>>(square, mean, cols)
//@ launch add_eps<<<ceil_div(rows, 128), 128>>>(mean, shifted, rows)
//@ launch rsqrt_each<<<ceil_div(rows, 128), 128>>>(shifted, factor, rows)
//@ launch scale_rows<<<ceil_div(rows * cols, 512), 128>>>(h, factor, normed, rows * cols, cols)
//@ launch scale_cols<<<ceil_div(rows * cols, 512), 128>>>(normed, weight, y, rows * cols, cols)
extern "C" __global__ void add(const float *a, const float *b, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4 *>(a + i), w = *reinterpret_cast<const float4 *>(b + i);
        *reinterpret_cast<float4 *>(y + i) = make_float4(v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w);
    } else {
        for (; i < n; i++) y[i] = a[i] + b[i];
    }
}

extern "C" __global__ void pow2(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        *reinterpret_cast<float4 *>(y + i) = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
    } else {
        for (; i < n; i++) y[i] = x[i] * x[i];
    }
}

extern "C" __global__ void row_mean(const float *x, float *y, int cols)
{
    __shared__ float part[256];
    const float *row = x + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += row[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] / (float)cols;
}

extern "C" __global__ void add_eps(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1e-6f;
}

extern "C" __global__ void rsqrt_each(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = rsqrtf(x[i]);
}

// A broadcast operand has no common stride: four separate accesses a thread.
extern "C" __global__ void scale_rows(const float *x, const float *factor, float *y, int count, int cols)
{
    int first = blockIdx.x * 512 + threadIdx.x;
    for (int j = 0; j < 4; j++) {
        int i = first + j * 128;
        if (i < count) y[i] = x[i] * factor[i / cols];
    }
}

extern "C" __global__ void scale_cols(const float *x, const float *weight, float *y, int count, int cols)
{
    int first = blockIdx.x * 512 + threadIdx.x;
    for (int j = 0; j < 4; j++) {
        int i = first + j * 128;
        if (i < count) y[i] = x[i] * weight[i % cols];
    }
}
