// A plan that the preprocessor would make: the plan is read before any compiler, so there is none.
// task: relu
// expect: plan_error
#define PLAN(k) //@ launch k<<<1, 1>>>(x, y, n)
PLAN(relu)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[0] = x[0]; }
