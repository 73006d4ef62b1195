// One kernel per operator, as h = x + residual; h * rsqrt(h.pow(2).mean(-1) + eps) * weight runs eagerly:
// add, pow, mean, add eps, rsqrt, multiply by the row's factor, multiply by the weight.
//@ buffer float h[rows * cols]
//@ buffer float square[rows * cols]
//@ buffer float mean[rows]
//@ buffer float shifted[rows]
//@ buffer float factor[rows]
//@ launch add<<<ceil_div(rows * cols, 1024), 128>>>(x, residual, h, rows * cols)
//@ launch pow2<<<ceil_div(rows * cols, 1024), 128>>>(h, square, rows * cols)
//@ launch row_mean<<<ceil_div(rows, 16), dim3(32, 16)>>>(square, mean, rows, cols)
//@ launch add_eps<<<ceil_div(rows, 128), 128>>>(mean, shifted, rows)
//@ launch rsqrt_each<<<ceil_div(rows, 128), 128>>>(shifted, factor, rows)
//@ launch scale_rows<<<ceil_div(rows * cols, 256), 128>>>(h, factor, square, rows * cols, ((1 << 32) * ((1 << log2(2 * cols - 1)) - cols)) / cols + 1, log2(2 * cols - 1))
//@ launch scale_cols<<<ceil_div(rows * cols, 256), 128>>>(square, weight, y, rows * cols, cols, ((1 << 32) * ((1 << log2(2 * cols - 1)) - cols)) / cols + 1, log2(2 * cols - 1))

// A block takes 1024 elements, eight a thread in two 16-byte accesses; the last block takes what is left.
extern "C" __global__ void add(const float *a, const float *b, float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
        float4 v[2], w[2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            v[j] = reinterpret_cast<const float4 *>(a + first)[threadIdx.x + j * 128];
            w[j] = reinterpret_cast<const float4 *>(b + first)[threadIdx.x + j * 128];
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] =
                make_float4(v[j].x + w[j].x, v[j].y + w[j].y, v[j].z + w[j].z, v[j].w + w[j].w);
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = a[i] + b[i];
    }
}

extern "C" __global__ void pow2(const float *x, float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
        float4 v[2];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + j * 128];
#pragma unroll
        for (int j = 0; j < 2; j++)
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] =
                make_float4(v[j].x * v[j].x, v[j].y * v[j].y, v[j].z * v[j].z, v[j].w * v[j].w);
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = x[i] * x[i];
    }
}

// A warp a row, four sums a lane.
extern "C" __global__ void row_mean(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 16 + threadIdx.y, fours = cols % 4 == 0 ? cols / 4 : 0;
    if (r >= rows) return;
    const float *row = x + (long long)r * cols;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int c = threadIdx.x; c < fours; c += 32) {
        float4 v = reinterpret_cast<const float4 *>(row)[c];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += 32) sum.x += row[c];
    float total = (sum.x + sum.y) + (sum.z + sum.w);
    for (int lane = 16; lane > 0; lane /= 2) total += __shfl_down_sync(0xffffffffu, total, lane);
    if (threadIdx.x == 0) y[r] = total / (float)cols;
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

// A broadcast operand has no common stride: two separate accesses a thread, the row found by a multiplication
// and a shift.
extern "C" __global__ __launch_bounds__(128, 4) void scale_rows(const float *x, const float *factor, float *y, unsigned count, unsigned magic, unsigned shift)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned i = first + j * 128;
        if (i < count) y[i] = x[i] * factor[(__umulhi(i, magic) + i) >> shift];
    }
}

extern "C" __global__ __launch_bounds__(128, 4) void scale_cols(const float *x, const float *weight, float *y, unsigned count, unsigned cols, unsigned magic,
                                                                unsigned shift)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned i = first + j * 128;
        if (i < count) y[i] = x[i] * weight[i - ((__umulhi(i, magic) + i) >> shift) * cols];
    }
}
