// The block that takes the last ticket of a row waits, with pauses, until the others' sums are counted in.
// task: row_sum
// expect: ok
//@ buffer float partial[rows * 4]
//@ buffer unsigned done[rows]
//@ buffer unsigned ticket[1]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(done, ticket, rows)
//@ launch row_sum<<<rows * 4, 64>>>(x, partial, done, ticket, y, cols)
extern "C" __global__ void clear(unsigned *done, unsigned *ticket, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) done[r] = 0;
    if (r == 0) *ticket = 0;
}
extern "C" __global__ void row_sum(const float *x, float *partial, unsigned *done, unsigned *ticket, float *y, int cols)
{
    __shared__ unsigned mine;
    __shared__ float part[2];
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
    __syncthreads();
    int r = mine / 4, p = mine % 4;
    float s = 0;
    for (int c = p * 64 + threadIdx.x; c < cols; c += 256) s += x[(long long)r * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x) return;
    partial[r * 4 + p] = part[0] + part[1];
    __threadfence();
    atomicAdd(&done[r], 1u);
    if (p != 3) return;
    for (unsigned pause = 20; atomicAdd(&done[r], 0u) != 4; pause = min(2 * pause, 500u)) __nanosleep(pause);
    __threadfence();
    y[r] = (partial[r * 4] + partial[r * 4 + 1]) + (partial[r * 4 + 2] + partial[r * 4 + 3]);
}
