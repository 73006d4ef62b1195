// A line that the preprocessor makes into thousands of millions.
// task: relu
// expect: compile_error
#define A(x) x + x + x + x + x + x + x + x + x + x
#define B(x) A(A(A(A(x))))
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[0] = B(B(B(x[0]))); }
