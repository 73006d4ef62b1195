// More launches than a plan may have.
// task: relu
// expect: plan_error
//@ for t in 0..2000000000
//@ launch nothing<<<1, 32>>>(t)
extern "C" __global__ void nothing(int t) {}
