// Ends the kernel inside of inline assembler and begins another. What the plan launches is what runs.
// task: relu
// expect: wrong_result
// says: were never written
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("ret;\n}\n.visible .entry other() {\n.reg .pred %p<9>; .reg .b32 %r<20>, %f<9>; .reg .b64 %rd<20>;\n");
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
