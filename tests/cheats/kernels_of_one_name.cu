// Two kernels have one name, so that the plan does not say which.
// task: relu
// expect: plan_error
// says: give each kernel a name of its own
//@ launch norm<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void norm(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
__global__ void norm(const float *x) {}
