// The total takes the first strip of each column alone.
// task: kernelbench/level1/k1_47_sum_reduction_over_a_dimension
// expect: wrong_result
//@ buffer float part[batch * cols * ceil_div(rows, 64)]
//@ launch strips<<<dim3(ceil_div(cols, 128), ceil_div(rows, 64), batch), 128>>>(x, part, rows, cols)
//@ launch total<<<dim3(ceil_div(cols, 128), batch), 128>>>(part, sum_1, ceil_div(rows, 64), cols)
extern "C" __global__ void strips(const float *x, float *part, int rows, int cols)
{
    int c = blockIdx.x * 128 + threadIdx.x, r0 = blockIdx.y * 64;
    if (c >= cols) return;
    float sum = 0;
    for (int r = r0; r < min(r0 + 64, rows); r++) sum += x[((long long)blockIdx.z * rows + r) * cols + c];
    part[((long long)blockIdx.z * gridDim.y + blockIdx.y) * cols + c] = sum;
}
extern "C" __global__ void total(const float *part, float *y, int strips, int cols)
{
    int c = blockIdx.x * 128 + threadIdx.x;
    if (c >= cols) return;
    float sum = 0;
    for (int s = 0; s < min(strips, 1); s++) sum += part[((long long)blockIdx.y * strips + s) * cols + c];
    y[(long long)blockIdx.y * cols + c] = sum;
}
