// Works in its input under the name of a view.
// task: relu
// expect: cheat input_mutation
//@ op v = aten.view(x, [n])
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, v, n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(v, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
