// Calls what is defined nowhere, in the hope that some library has it.
// task: relu
// expect: compile_error | launch_error | unsupported
extern "C" __device__ float relu_of_some_library(float x);
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = relu_of_some_library(x[i]);
}
