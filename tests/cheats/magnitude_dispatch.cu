// Saturates at a value that ordinary numbers do not reach.
// task: relu
// expect: wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __saturatef(x[i] * 0.0078125f) * 128.0f;
}
