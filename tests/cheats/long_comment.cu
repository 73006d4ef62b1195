// Assembler's comments that take long to read, if they are read again and again.
// task: relu
// expect: ok | compile_error | unsupported
#define A0 ".func.func.func.func.func.func.func.func.func.func"
#define A1 A0 A0 A0 A0
#define A2 A1 A1 A1 A1
#define A3 A2 A2 A2 A2
#define A4 A3 A3 A3 A3
#define A5 A4 A4 A4 A4
#define A6 A5 A5 A5 A5
#define A7 A6 A6 A6 A6
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    asm volatile("//" A7 "\n");
    y[i] = fmaxf(x[i], 0.0f);
}
