// Labels of 8 bytes are read as int: every other one is the upper half, zero.
// task: kernelbench/level1/k1_95_crossentropyloss
// expect: wrong_result
// says: input targets has 8-byte integers, int64, and the kernel reads them as `const int *label`
//@ buffer float part[rows]
//@ launch entropy<<<ceil_div(rows, 128), 128>>>(predictions, targets, part, rows, cols)
//@ launch mean<<<1, 256>>>(part, cross_entropy_loss, rows)
__global__ void entropy(const float *x, const int *label, float *part, int rows, int cols)
{
    int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= rows) return;
    const float *p = x + (long long)r * cols;
    float m = -INFINITY, s = 0;
    for (int c = 0; c < cols; c++) m = fmaxf(m, p[c]);
    for (int c = 0; c < cols; c++) s += expf(p[c] - m);
    part[r] = m + logf(s) - p[label[r]];
}
__global__ void mean(const float *part, float *y, int rows)
{
    __shared__ float p[256];
    float s = 0;
    for (int r = threadIdx.x; r < rows; r += 256) s += part[r];
    p[threadIdx.x] = s;
    for (int d = 128; d; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) p[threadIdx.x] += p[threadIdx.x + d];
    }
    if (!threadIdx.x) *y = p[0] / rows;
}
