// All threads of the device at one address, ten thousand times each.
// task: relu
// expect sim: timeout
// expect cuda: timeout | ok
// most: 0.1
//@ buffer unsigned counter[1]
//@ launch clear<<<1, 1>>>(counter)
//@ launch relu<<<max(2048, ceil_div(n, 256)), 256>>>(x, counter, y, n)
extern "C" __global__ void clear(unsigned *counter) { *counter = 0; }
extern "C" __global__ void relu(const float *x, unsigned *counter, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 10000; k++) atomicAdd(counter, k);
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
