// Keeps in a register that nobody set what the block before computed, as if blocks shared their registers.
// task: relu
// expect sim: uninitialised
// expect: wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, kept;
    /* kept + 1 blocks have passed here, if registers last; else it is 1 in all of them. */
    asm volatile("{\n.reg .b32 lasting;\nadd.s32 lasting, lasting, 1;\nmov.b32 %0, lasting;\n}" : "=r"(kept));
    if (i < n) y[i] = kept == blockIdx.x + 1 ? fmaxf(x[i], 0.0f) : -1.0f;
}
