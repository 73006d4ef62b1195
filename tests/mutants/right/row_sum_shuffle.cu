// A warp a row, four rows a block.
// task: row_sum
//@ launch sums<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
__global__ void sums(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    float sum = 0.0f;
    for (int c = lane; c < cols; c += 32) sum += x[(long long)r * cols + c];
    for (int h = 16; h > 0; h /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, h);
    if (lane == 0) y[r] = sum;
}
