// A kernel that launches another, whose end nobody awaits: nothing links the device's runtime.
// task: relu
// expect: compile_error
//@ launch parent<<<1, 1>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void parent(const float *x, float *y, int n) { relu<<<(n + 255) / 256, 256>>>(x, y, n); }
