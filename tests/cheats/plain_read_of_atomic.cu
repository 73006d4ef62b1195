// Two blocks add to a word and one reads it without knowing whether the other has added.
// task: row_sum
// expect sim: race
// expect cuda: wrong_result | nondeterministic | race | ok
//@ buffer float acc[rows]
//@ launch zero<<<ceil_div(rows, 32), 32>>>(acc, rows)
//@ launch add<<<dim3(2, rows), 32>>>(x, acc, y, cols)
extern "C" __global__ void zero(float *a, int n)
{
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) a[i] = 0;
}
extern "C" __global__ void add(const float *x, float *acc, float *y, int cols)
{
    float s = 0;
    for (int c = blockIdx.x * 32 + threadIdx.x; c < cols; c += 64) s += x[(long long)blockIdx.y * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x) return;
    atomicAdd(&acc[blockIdx.y], s);
    if (blockIdx.x == 1) y[blockIdx.y] = acc[blockIdx.y];
}
