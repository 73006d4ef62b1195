// Right for sizes that the tile divides, as the timed one; elsewhere the tail is left.
// task: transpose
// expect: wrong_result
//@ launch transpose<<<dim3(cols / 32 + (cols < 32), rows / 32 + (rows < 32)), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[32][33];
    for (int k = threadIdx.y; k < 32; k += 8) {
        int r = blockIdx.y * 32 + k, c = blockIdx.x * 32 + threadIdx.x;
        if (r < rows && c < cols) tile[k][threadIdx.x] = x[r * cols + c];
    }
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) {
        int c = blockIdx.x * 32 + k, r = blockIdx.y * 32 + threadIdx.x;
        if (r < rows && c < cols) y[c * rows + r] = tile[threadIdx.x][k];
    }
}
