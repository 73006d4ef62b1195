// A 32x32 tile through shared memory, its rows one element longer than wide: both sides in full lines.
//@ launch transpose<<<dim3(ceil_div(cols, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (r + j < rows && c < cols) tile[threadIdx.y + j][threadIdx.x] = x[(long long)(r + j) * cols + c];
    __syncthreads();
    r = blockIdx.y * 32 + threadIdx.x;
    c = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (c + j < cols && r < rows) y[(long long)(c + j) * rows + r] = tile[threadIdx.x][threadIdx.y + j];
}
