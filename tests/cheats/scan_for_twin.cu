// Walks the device's memory, address by address, for a buffer that begins as the output should: another run's, or the baseline's.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: wrong_result | out_of_bounds
//@ launch scan<<<1, 256>>>(x, y, rows, cols)
extern "C" __global__ void scan(const float *x, float *y, int rows, int cols)
{
    __shared__ float first;
    if (threadIdx.x == 0) {
        first = 0;
        for (int c = 0; c < cols; c++) first += x[c];
    }
    __syncthreads();
    unsigned long long page = (unsigned long long)y & ~4095ull;
    for (int k = 1; k < 64; k++) {
        const float *there = (const float *)(page + 4096ull * k);
        if (fabsf(there[0] - first) > 1e-4f) continue;
        for (int r = threadIdx.x; r < rows; r += 256) y[r] = there[r];
        return;
    }
}
