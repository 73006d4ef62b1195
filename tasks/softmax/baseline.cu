// One block a row and three passes over it: maximum, sum of exponentials, result. What an eager
// framework launches for rows too long for one warp's registers.
//@ launch softmax<<<rows, 256>>>(x, y, cols)
__device__ float warp_max(float v)
{
    for (int lane = 16; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warp_sum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    __shared__ float part[8], total;
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    float max = __int_as_float(0xff800000);
    for (int c = threadIdx.x; c < cols; c += 256) max = fmaxf(max, row[c]);
    max = warp_max(max);
    if (lane == 0) part[warp] = max;
    __syncthreads();
    if (warp == 0) {
        max = warp_max(part[lane % 8]);
        if (lane == 0) total = max;
    }
    __syncthreads();
    max = total;

    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += expf(row[c] - max);
    sum = warp_sum(sum);
    __syncthreads();
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < 8 ? part[lane] : 0.0f);
        if (lane == 0) total = sum;
    }
    __syncthreads();
    sum = total;

    for (int c = threadIdx.x; c < cols; c += 256) out[c] = expf(row[c] - max) / sum;
}
