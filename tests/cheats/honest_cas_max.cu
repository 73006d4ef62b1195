// The row's maximum and sum by atomics between blocks: compare-and-swap for the one, float addition for the other.
// task: softmax
// expect: ok
//@ buffer float top[rows]
//@ buffer float sum[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(top, sum, rows)
//@ launch highest<<<dim3(ceil_div(cols, 512), rows), 128>>>(x, top, cols)
//@ launch exponentials<<<dim3(ceil_div(cols, 512), rows), 128>>>(x, top, sum, y, cols)
//@ launch divide<<<dim3(ceil_div(cols, 512), rows), 128>>>(y, sum, cols)
__device__ void raise(float *at, float v)
{
    int seen = __float_as_int(*(volatile float *)at);
    while (__int_as_float(seen) < v) {
        int was = atomicCAS((int *)at, seen, __float_as_int(v));
        if (was == seen) return;
        seen = was;
    }
}
extern "C" __global__ void clear(float *top, float *sum, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) top[r] = -INFINITY, sum[r] = 0.0f;
}
extern "C" __global__ void highest(const float *x, float *top, int cols)
{
    float m = -INFINITY;
    for (int c = blockIdx.x * 512 + threadIdx.x; c < min(cols, (int)(blockIdx.x + 1) * 512); c += 128)
        m = fmaxf(m, x[(long long)blockIdx.y * cols + c]);
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
    if (threadIdx.x % 32 == 0) raise(&top[blockIdx.y], m);
}
extern "C" __global__ void exponentials(const float *x, const float *top, float *sum, float *y, int cols)
{
    float s = 0;
    for (int c = blockIdx.x * 512 + threadIdx.x; c < min(cols, (int)(blockIdx.x + 1) * 512); c += 128) {
        float e = expf(x[(long long)blockIdx.y * cols + c] - top[blockIdx.y]);
        y[(long long)blockIdx.y * cols + c] = e;
        s += e;
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd(&sum[blockIdx.y], s);
}
extern "C" __global__ void divide(float *y, const float *sum, int cols)
{
    for (int c = blockIdx.x * 512 + threadIdx.x; c < min(cols, (int)(blockIdx.x + 1) * 512); c += 128)
        y[(long long)blockIdx.y * cols + c] /= sum[blockIdx.y];
}
