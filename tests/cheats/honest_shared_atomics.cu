// Sums and a maximum by atomics in shared memory.
// task: softmax
// expect: ok
//@ launch softmax<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    __shared__ float sum;
    __shared__ int top; // the order of floats as integers
    const float *row = x + (long long)blockIdx.x * cols;
    if (threadIdx.x == 0) sum = 0.0f, top = 0x80000000;
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += 128) {
        int b = __float_as_int(row[c]);
        atomicMax(&top, b < 0 ? b ^ 0x7fffffff : b);
    }
    __syncthreads();
    float m = __int_as_float(top < 0 ? top ^ 0x7fffffff : top), s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) s += expf(row[c] - m);
    atomicAdd(&sum, s);
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = expf(row[c] - m) / sum;
}
