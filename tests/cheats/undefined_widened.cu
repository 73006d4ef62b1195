// Widens two halves of which one has no value, and uses that one.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (i >= n) return;
    asm volatile("{.reg .b16 u, z, a, b;\n.reg .b32 d;\nmov.b16 z, 0;\nmov.b32 d, {z, u};\nmov.b32 {a, b}, d;\ncvt.f32.f16 %0, b;}" : "=f"(low));
    y[i] = fmaxf(x[i], low);
}
