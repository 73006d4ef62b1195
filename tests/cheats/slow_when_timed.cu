// Right, but beside it one thread follows a chain of loads for seconds at the timed size: a GPU stops it, and so does a prediction.
// task: row_sum
// expect: timeout
//@ buffer int sink[1]
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch chain<<<1, 1>>>(x, sink, rows * cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) sum += x[(long long)blockIdx.x * cols + c];
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
extern "C" __global__ void chain(const float *x, int *sink, int n)
{
    unsigned at = 0;
    for (int i = 0; i < n; i++) at = (at * 1664525u + (__float_as_uint(x[at]) & 0xffffu) + 1013904223u) % n;
    sink[0] = at;
}
