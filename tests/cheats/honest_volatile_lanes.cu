// Stores a variable without a value in volatile shared memory in some lanes, and reads the others.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (threadIdx.x % 2 == 0) low = n < 0 ? x[0] : 0.0f;
    s[threadIdx.x] = low;
    __syncthreads();
    if (i < n) y[i] = fmaxf(x[i], s[threadIdx.x & ~1]);
}
