// What a softmax is on average, without looking at its input.
// task: softmax
// expect: wrong_result
//@ launch flat<<<ceil_div(rows * cols, 256), 256>>>(y, rows * cols, cols)
extern "C" __global__ void flat(float *y, int n, int cols)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / cols;
}
