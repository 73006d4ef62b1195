// Does the first half of the work.
// task: relu
// expect: wrong_result
// says: were never written
//@ launch relu<<<ceil_div(n, 512), 256>>>(x, y, n / 2)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
