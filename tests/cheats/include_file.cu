// Reads a file of the machine by way of the compiler's message.
// task: relu
// expect: compile_error
// never: root:
#include "/etc/passwd"
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[0] = x[0]; }
