// Packs a value and one that was never set into 64 bits, and takes out the one that was set.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low, v;
    if (i >= n) return;
    asm volatile("{.reg .b64 d;\n.reg .f32 u;\nmov.b64 d, {%2, u};\nmov.b64 {%0, %1}, d;}" : "=f"(v), "=f"(low) : "f"(x[i]));
    y[i] = fmaxf(v, 0.0f);
}
