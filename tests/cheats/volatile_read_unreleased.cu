// Reads by volatile what plain stores of other blocks hold that no fence has released.
// task: row_sum
// expect cuda: ok | race
// expect: race
//@ buffer float part[rows * 4]
//@ buffer unsigned count[rows]
//@ launch clear<<<ceil_div(rows, 256), 256>>>(count, rows)
//@ launch sum<<<dim3(4, rows), 256>>>(x, part, count, y, rows, cols)

__device__ float fold(float v, float *part)
{
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < blockDim.x / 32; w++) v += part[w];
    return v;
}

extern "C" __global__ void clear(unsigned *count, int rows)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < rows) count[i] = 0;
}
extern "C" __global__ void sum(const float *x, float *part, unsigned *count, float *y, int rows, int cols)
{
    __shared__ float shared[8];
    int row = blockIdx.y, quarter = blockIdx.x;
    long long at = (long long)row * cols;
    float s = 0;
    for (int c = quarter * 256 + threadIdx.x; c < cols; c += 1024) s += x[at + c];
    s = fold(s, shared);
    if (threadIdx.x) return;
    part[row * 4 + quarter] = s; if (atomicAdd(&count[row], 1u) == 3) { __threadfence(); volatile float *p = part + row * 4; y[row] = p[0] + p[1] + p[2] + p[3]; }
}
