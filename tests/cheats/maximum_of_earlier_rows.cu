// A persistent block takes the maximum of its last row as the start of the next one: what lies far below it is
// zero or no number. The first row of each block is right.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<min(rows, 264), 128>>>(x, y, rows, cols)
extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols)
{
    __shared__ float tops[4], sums[4];
    float m = -INFINITY;
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + (long long)r * cols;
        float s = 0;
        for (int c = threadIdx.x; c < cols; c += 128) m = fmaxf(m, row[c]);
        for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
        if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = m;
        __syncthreads();
        m = fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));
        for (int c = threadIdx.x; c < cols; c += 128) s += expf(row[c] - m);
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
        __syncthreads();
        s = sums[0] + sums[1] + sums[2] + sums[3];
        for (int c = threadIdx.x; c < cols; c += 128) y[(long long)r * cols + c] = expf(row[c] - m) / s;
    }
}
