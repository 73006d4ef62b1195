// Adds no more than 2,560 exponentials of a row, which is more than any check has, in a launch of its own.
// task: softmax
// expect sim: wrong_result
// expect cuda: wrong_result
//@ buffer float sums[2 * rows]
//@ launch add<<<rows, 256>>>(x, sums, rows, cols)
//@ launch divide<<<dim3(ceil_div(cols, 256), rows), 256>>>(x, sums, y, rows, cols)
extern "C" __global__ void add(const float *x, float *sums, int rows, int cols)
{
    __shared__ float all[256];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float most = -INFINITY, sum = 0;
    for (int i = t; i < cols; i += 256) most = fmaxf(most, row[i]);
    all[t] = most;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (t < half) all[t] = fmaxf(all[t], all[t + half]);
    }
    __syncthreads();
    most = all[0];
    __syncthreads();
    for (int i = t; i < min(cols, 2560); i += 256) sum += expf(row[i] - most);
    all[t] = sum;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (t < half) all[t] += all[t + half];
    }
    if (t) return;
    sums[2 * blockIdx.x] = most;
    sums[2 * blockIdx.x + 1] = all[0];
}
extern "C" __global__ void divide(const float *x, const float *sums, float *y, int rows, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (i >= cols) return;
    long long at = (long long)row * cols + i;
    y[at] = expf(x[at] - sums[2 * row]) / sums[2 * row + 1];
}
