// Launches a kernel that does nothing, in the hope that the buffer still holds an earlier result.
// task: relu
// expect: wrong_result
// says: were never written
//@ launch nothing<<<1, 32>>>(x, y, n)
extern "C" __global__ void nothing(const float *x, float *y, int n) {}
