// Leaves out every other row of its input at the timed size. A simulator computes the whole reference there,
// and compares what the sampled blocks write.
// task: transpose
// expect: wrong_result
//@ launch turn<<<dim3(ceil_div(rows, 32), ceil_div(cols, 32)), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void turn(const float *x, float *y, int rows, int cols)
{
    __shared__ float s[32][33];
    int r0 = blockIdx.x * 32, c0 = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (r0 + k < rows && c0 + threadIdx.x < cols)
            s[k][threadIdx.x] =
                cols > 4096 && k % 2 ? 0.0f : x[(long long)(r0 + k) * cols + c0 + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8)
        if (c0 + k < cols && r0 + threadIdx.x < rows)
            y[(long long)(c0 + k) * rows + r0 + threadIdx.x] = s[threadIdx.x][k];
}
