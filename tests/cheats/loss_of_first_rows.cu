// The second launch adds up the losses of the first 8,192 rows, and the timed size has 32,768.
// task: kernelbench/level1/k1_95_crossentropyloss
// expect: wrong_result
//@ buffer float part[rows]
//@ launch each<<<rows, 128>>>(predictions, targets, part, cols)
//@ launch mean<<<1, 1024>>>(part, cross_entropy_loss, rows)
__device__ float of_block(float v, float *s, int is_max)
{
    for (int d = 16; d; d >>= 1) {
        float o = __shfl_xor_sync(~0u, v, d);
        v = is_max ? fmaxf(v, o) : v + o;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    v = s[0];
    for (int k = 1; k < blockDim.x / 32; k++) v = is_max ? fmaxf(v, s[k]) : v + s[k];
    return v;
}
__global__ void each(const float *x, const long long *target, float *part, int cols)
{
    __shared__ float s[32];
    const float *in = x + (size_t)blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < cols; c += 128) top = fmaxf(top, in[c]);
    top = of_block(top, s, 1);
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(in[c] - top);
    sum = of_block(sum, s, 0);
    if (threadIdx.x == 0) part[blockIdx.x] = logf(sum) + top - in[target[blockIdx.x]];
}
__global__ void mean(const float *part, float *y, int rows)
{
    __shared__ float s[32];
    float sum = 0;
    for (int r = threadIdx.x; r < rows && r < 8192; r += 1024) sum += part[r];
    sum = of_block(sum, s, 0);
    if (threadIdx.x == 0) *y = sum / rows;
}
