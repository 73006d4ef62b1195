// A lock between blocks of atomics whose scope is one block.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ buffer unsigned lock[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(lock, y, rows)
//@ launch row_sum<<<dim3(ceil_div(cols, 512), rows), 128>>>(x, lock, y, cols)
__global__ void clear(unsigned *lock, float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) lock[r] = 0, y[r] = 0.0f;
}
__global__ void row_sum(const float *x, unsigned *lock, float *y, int cols)
{
    __shared__ float part[4];
    float s = 0;
    for (int c = blockIdx.x * 512 + threadIdx.x; c < min(cols, (int)(blockIdx.x + 1) * 512); c += 128) s += x[(long long)blockIdx.y * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x) return;
    unsigned *m = lock + blockIdx.y;
    while (atomicCAS_block(m, 0u, 1u)) ; __threadfence();
    y[blockIdx.y] += (part[0] + part[1]) + (part[2] + part[3]);
    __threadfence(); atomicExch_block(m, 0u);
}
