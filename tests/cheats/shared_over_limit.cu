// A launch that no device can make, in the hope that its failure is overlooked and an old output stands.
// task: relu
// expect: plan_error
// line: 5
//@ launch relu<<<ceil_div(n, 256), 256, 1024 * 1024>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[0] = x[0]; }
