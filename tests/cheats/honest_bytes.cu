// Selects bytes of a word whose high half has no value, only those with a value.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned d;
    if (i >= n) return;
    asm volatile("{.reg .b16 u, z;\nmov.b16 z, 0;\nmov.b32 %0, {z, u};}" : "=r"(d));
    y[i] = fmaxf(x[i], __uint_as_float(__byte_perm(d, 0, 0x4140)));
}
