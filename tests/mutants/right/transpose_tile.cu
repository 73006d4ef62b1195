// A tile of 32x32 with a padded row.
// task: transpose
//@ launch turn<<<dim3(ceil_div(cols, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(x, y, rows, cols)
__global__ void turn(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += 8)
        if (r0 + j < rows && c < cols) tile[j][threadIdx.x] = x[(long long)(r0 + j) * cols + c];
    __syncthreads();
    int r = r0 + threadIdx.x, c0 = blockIdx.x * 32;
    for (int j = threadIdx.y; j < 32; j += 8)
        if (c0 + j < cols && r < rows) y[(long long)(c0 + j) * rows + r] = tile[threadIdx.x][j];
}
