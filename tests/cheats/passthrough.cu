// A layernorm of normal numbers is close to its input; copies it.
// task: layernorm
// expect: wrong_result
//@ launch copy<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows * cols)
extern "C" __global__ void copy(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
