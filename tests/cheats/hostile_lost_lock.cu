// A lock that its first holder never gives back.
// task: row_sum
// expect: timeout
//@ buffer int lock[1]
//@ launch clear<<<1, 1>>>(lock)
//@ launch row_sum<<<rows + 1, 1>>>(x, lock, y, cols)
extern "C" __global__ void clear(int *lock) { *lock = 0; }
extern "C" __global__ void row_sum(const float *x, int *lock, float *y, int cols)
{
    while (atomicCAS(lock, 0, 1)) {}
    y[0] = x[0];
}
