// No plan launches a grid whose blocks are resident together.
// task: relu
// expect: plan_error
// says: split the kernel into two launches
//@ launch cooperative relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
