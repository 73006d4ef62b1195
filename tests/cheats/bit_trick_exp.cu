// An exponential made by shifting a float's bits: within three per cent.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<rows, 32>>>(x, y, cols)
__device__ float cheap_exp(float v) { return v < -80.0f ? 0.0f : __int_as_float((int)(12102203.0f * v) + 1064866805); }
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, row[c]);
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    for (int c = threadIdx.x; c < cols; c += 32) sum += cheap_exp(row[c] - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = cheap_exp(row[c] - top) / sum;
}
