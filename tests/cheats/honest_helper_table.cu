// A table in a device variable that the sequence itself fills again each time before it is read.
// task: residual_rmsnorm
// expect: ok
__device__ float factor[1 << 15];
//@ launch fill<<<rows, 64>>>(x, residual, cols)
//@ launch apply<<<dim3(ceil_div(cols, 256), rows), 256>>>(x, residual, weight, y, cols)
extern "C" __global__ void fill(const float *x, const float *residual, int cols)
{
    __shared__ float part[2];
    long long row = (long long)blockIdx.x * cols;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 64) {
        float h = x[row + c] + residual[row + c];
        s = fmaf(h, h, s);
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) factor[blockIdx.x] = rsqrtf((part[0] + part[1]) / cols + 1e-6f);
}
extern "C" __global__ void apply(const float *x, const float *residual, const float *weight, float *y, int cols)
{
    int c = blockIdx.x * 256 + threadIdx.x;
    long long at = (long long)blockIdx.y * cols + c;
    if (c < cols) y[at] = (x[at] + residual[at]) * factor[blockIdx.y] * weight[c];
}
