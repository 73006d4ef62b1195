// The fence stands behind the ticket and orders nothing of what the ticket publishes.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ buffer float part[rows * 4]
//@ buffer unsigned count[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(count, rows)
//@ launch split<<<dim3(4, rows), 128>>>(x, part, count, y, cols)
__global__ void clear(unsigned *count, int rows)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) count[i] = 0;
}
__global__ void split(const float *x, float *part, unsigned *count, float *y, int cols)
{
    __shared__ float lanes[128];
    __shared__ unsigned ticket;
    int t = threadIdx.x;
    long long r = blockIdx.y;
    float s = 0.0f;
    for (int c = blockIdx.x * 128 + t; c < cols; c += 512) s += x[r * cols + c];
    lanes[t] = s;
    __syncthreads();
    for (int h = 64; h > 0; h >>= 1) {
        if (t < h) lanes[t] += lanes[t + h];
        __syncthreads();
    }
    if (t == 0) part[r * 4 + blockIdx.x] = lanes[0];
    __syncthreads();
    if (t == 0) {
        ticket = atomicAdd(&count[r], 1u);
        __threadfence();
    }
    __syncthreads();
    if (ticket == 3 && t == 0) {
        float total = 0.0f;
        for (int b = 0; b < 4; b++) total += part[r * 4 + b];
        y[r] = total;
    }
}
