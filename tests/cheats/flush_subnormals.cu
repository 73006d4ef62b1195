// Arithmetic that takes subnormal numbers for zero.
// task: relu
// expect: wrong_result
// says: special values
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r;
    asm("max.ftz.f32 %0, %1, 0f00000000;" : "=f"(r) : "f"(x[i]));
    y[i] = r;
}
