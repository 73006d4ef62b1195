// The right halo of a full tile is read one element too far.
// task: kernelbench/level1/k1_44_average_pooling_1d
// expect: wrong_result
//@ launch pool<<<dim3(ceil_div(cols + 1, 256), batch * rows), 256>>>(x, avg_pool1d, cols)
extern "C" __global__ void pool(const float *x, float *y, int cols)
{
    __shared__ float line[263];
    int t = threadIdx.x, from = blockIdx.x * 256;
    long long row = blockIdx.y;
    for (int i = t; i < 263; i += 256) {
        int c = from + i - 4 + (i >= 260);
        line[i] = c >= 0 && c < cols ? x[row * cols + c] : 0.0f;
    }
    __syncthreads();
    if (from + t > cols) return;
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += line[t + k];
    y[row * (cols + 1) + from + t] = sum / 8;
}
