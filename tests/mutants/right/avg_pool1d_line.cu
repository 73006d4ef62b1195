// A line with its halo in shared memory; padding counts.
// task: k1_44_average_pooling_1d
//@ launch pool<<<dim3(ceil_div(cols + 1, 256), batch * rows), 256>>>(x, avg_pool1d, cols)
__global__ void pool(const float *x, float *y, int cols)
{
    __shared__ float line[263];
    int o0 = blockIdx.x * 256, t = threadIdx.x;
    const float *row = x + (long long)blockIdx.y * cols;
    for (int i = t; i < 263; i += 256) line[i] = o0 + i - 4 >= 0 && o0 + i - 4 < cols ? row[o0 + i - 4] : 0.0f;
    __syncthreads();
    float s = 0.0f;
    for (int k = 0; k < 8; k++) s += line[t + k];
    if (o0 + t <= cols) y[(long long)blockIdx.y * (cols + 1) + o0 + t] = s / 8.0f;
}
