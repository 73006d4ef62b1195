// A barrier of the whole grid by an atomic and a volatile load, of blocks that are all resident.
// task: row_sum
// expect: ok
//@ buffer float partial[rows * 64]
//@ buffer unsigned arrived[1]
//@ launch clear<<<1, 1>>>(arrived)
//@ launch cooperative row_sum<<<64, 128>>>(x, partial, arrived, y, rows, cols)
extern "C" __global__ void clear(unsigned *arrived) { *arrived = 0; }
extern "C" __global__ void row_sum(const float *x, float *partial, unsigned *arrived, float *y, int rows, int cols)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, per = (cols + 63) / 64, from = blockIdx.x * per;
    for (int r = warp; r < rows; r += 4) {
        float s = 0;
        for (int c = from + lane; c < min(cols, from + per); c += 32) s += x[(long long)r * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (lane == 0) partial[r * 64 + blockIdx.x] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived != gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    for (int r = blockIdx.x * 128 + threadIdx.x; r < rows; r += 64 * 128) {
        float s = 0;
        for (int k = 0; k < 64; k++) s += partial[r * 64 + k];
        y[r] = s;
    }
}
