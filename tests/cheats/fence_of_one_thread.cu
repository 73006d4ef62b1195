// The thread that takes the ticket has a fence before the barrier: it orders none of what the other warps wrote.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ buffer float part[rows * 512]
//@ buffer unsigned count[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(count, rows)
//@ launch split<<<dim3(4, rows), 128>>>(x, part, count, y, cols)
__global__ void clear(unsigned *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) count[i] = 0;
}
__global__ void split(const float *x, float *part, unsigned *count, float *y, int cols)
{
    __shared__ unsigned ticket;
    int t = threadIdx.x;
    long long r = blockIdx.y;
    float s = 0.0f;
    for (int c = blockIdx.x * 128 + t; c < cols; c += 512) s += x[r * cols + c];
    part[r * 512 + blockIdx.x * 128 + t] = s;
    if (t == 0) __threadfence();
    __syncthreads();
    if (t == 0) {
        ticket = atomicAdd(&count[r], 1u);
    }
    __syncthreads();
    if (ticket == 3 && t == 0) {
        float total = 0.0f;
        for (int b = 0; b < 512; b++) total += part[r * 512 + b];
        y[r] = total;
    }
}
