// 32 columns and 8 parts of the rows a block.
// task: k1_47_sum_reduction_over_a_dimension
//@ launch sums<<<dim3(ceil_div(cols, 32), batch), dim3(32, 8)>>>(x, sum_1, rows, cols)
__global__ void sums(const float *x, float *y, int rows, int cols)
{
    __shared__ float parts[8][32];
    int col = blockIdx.x * 32 + threadIdx.x, part = threadIdx.y;
    float sum = 0.0f;
    for (int r = part; r < rows && col < cols; r += 8) sum += x[((long long)blockIdx.y * rows + r) * cols + col];
    parts[part][threadIdx.x] = sum;
    __syncthreads();
    if (part || col >= cols) return;
    for (int i = 1; i < 8; i++) sum += parts[i][threadIdx.x];
    y[blockIdx.y * cols + col] = sum;
}
