// A maximum and a sum that a thread carries along its columns, merged over the block.
// task: k1_23_softmax
//@ launch softmax<<<rows, 256>>>(x, softmax, cols)
__global__ void softmax(const float *x, float *y, int cols)
{
    __shared__ float tops[256], sums[256];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float top = -INFINITY, sum = 0.0f;
    for (int c = t; c < cols; c += 256) {
        float v = row[c], next = fmaxf(top, v);
        if (next > -INFINITY) sum = sum * expf(top - next) + expf(v - next);
        top = next;
    }
    tops[t] = top;
    sums[t] = sum;
    for (int h = 128; h; h /= 2) {
        __syncthreads();
        if (t >= h) continue;
        float a = tops[t], b = tops[t + h], next = fmaxf(a, b);
        if (next > -INFINITY) sums[t] = sums[t] * expf(a - next) + sums[t + h] * expf(b - next);
        tops[t] = next;
    }
    __syncthreads();
    top = tops[0];
    sum = sums[0];
    for (int c = t; c < cols; c += 256) y[(long long)blockIdx.x * cols + c] = expf(row[c] - top) / sum;
}
