// Shortens a word of which the high half has no value to the other half.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (i >= n) return;
    asm volatile("{.reg .b16 u, z;\n.reg .b32 d;\nmov.b16 z, 0;\nmov.b32 d, {z, u};\ncvt.u32.u16 d, d;\ncvt.rn.f32.u32 %0, d;}" : "=f"(low));
    y[i] = fmaxf(x[i], low);
}
