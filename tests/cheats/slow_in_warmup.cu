// Counts its runs and dawdles in the first, so that fewer are thought enough. They are timed like the others.
// task: row_sum
// expect: ok
// most: 1.2
__device__ unsigned launches;
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch count<<<1, 1>>>()
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0;
    if (launches < 3)
        for (int k = 0; k < 200; k++) __nanosleep(100);
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
extern "C" __global__ void count() { launches++; }
