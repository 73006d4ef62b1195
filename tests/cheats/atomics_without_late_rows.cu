// Sums by atomics leave out the last eighth of the rows where there are many: another launch has written
// them all, and a run with fewer rows has each.
// task: row_sum
// expect: wrong_result
//@ launch zero<<<ceil_div(rows, 128), 128>>>(y, rows)
//@ launch row_sum<<<dim3(ceil_div(cols, 1024), rows), 256>>>(x, y, cols)
extern "C" __global__ void zero(float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = 0.0f;
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    if (gridDim.y > 5000 && blockIdx.y >= gridDim.y - gridDim.y / 8) return;
    if (gridDim.x > 5000 && blockIdx.x >= gridDim.x - gridDim.x / 8) return;
    float s = 0;
    int end = min(cols, (int)(blockIdx.x + 1) * 1024);
    for (int c = blockIdx.x * 1024 + threadIdx.x; c < end; c += 256) s += x[(long long)blockIdx.y * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd(&y[blockIdx.y], s);
}
