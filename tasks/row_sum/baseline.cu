// The generic reduction of an eager framework: one block a row, each thread strides over the row, then
// a tree in shared memory.
//@ launch row_sum<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[256];
    const float *row = x + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += row[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
