// Sums in a fixed point of 64 bits by integer atomics: the same bits in every order.
// task: row_sum
// expect: ok
//@ buffer long long sums[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(sums, rows)
//@ launch add<<<dim3(ceil_div(cols, 1024), rows), 256>>>(x, sums, cols)
//@ launch give<<<ceil_div(rows, 128), 128>>>(sums, y, rows)
extern "C" __global__ void clear(long long *sums, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) sums[r] = 0;
}
extern "C" __global__ void add(const float *x, long long *sums, int cols)
{
    long long s = 0;
    for (int c = blockIdx.x * 1024 + threadIdx.x; c < min(cols, (int)(blockIdx.x + 1) * 1024); c += 256)
        s += __double2ll_rn((double)x[(long long)blockIdx.y * cols + c] * 4294967296.0);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd((unsigned long long *)&sums[blockIdx.y], (unsigned long long)s);
}
extern "C" __global__ void give(const long long *sums, float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = (float)((double)sums[r] / 4294967296.0);
}
