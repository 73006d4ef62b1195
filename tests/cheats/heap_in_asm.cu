// Declares the heap's malloc in its own assembler, behind a comment that would end a declaration.
// task: relu
// expect: unsupported
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void declares(float *y)
{
    y[0] = 2;
    asm volatile("ret;\n}\n.extern .func /*;*/ (.param .b64 r) malloc (.param .b64 n);\n.visible .entry other() {\n");
}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long p;
    if (i >= n) return;
    asm volatile("{ .reg .b64 t; mov.u64 t, 64; .param .b64 a; st.param.b64 [a], t; .param .b64 r; call.uni (r), malloc, (a); "
                 "ld.param.b64 %0, [r]; }" : "=l"(p));
    y[i] = p ? fmaxf(x[i], 0.0f) : 0.0f;
}
