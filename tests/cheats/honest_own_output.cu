// The exponentials go to the output, and a second launch reads them there and divides.
// task: softmax
// expect: ok
//@ buffer float sums[rows]
//@ launch exponentials<<<rows, 128>>>(x, y, sums, cols)
//@ launch divide<<<dim3(ceil_div(cols, 256), rows), 256>>>(y, sums, cols)
extern "C" __global__ void exponentials(const float *x, float *y, float *sums, int cols)
{
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -INFINITY, s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) top = fmaxf(top, row[c]);
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    top = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += 128) s += y[(long long)blockIdx.x * cols + c] = expf(row[c] - top);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void divide(float *y, const float *sums, int cols)
{
    int c = blockIdx.x * 256 + threadIdx.x;
    if (c < cols) y[(long long)blockIdx.y * cols + c] /= sums[blockIdx.y];
}
