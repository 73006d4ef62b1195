// The halo of each tile is read one element too early.
// task: kernelbench/level1/k1_67_conv_standard_1d
// expect: wrong_result
//@ launch conv<<<dim3(ceil_div(cols - 2, 128), features, batch), 128>>>(x, conv1d_weight, conv1d, features, rows, cols)
__global__ void conv(const float *x, const float *w, float *y, int features, int rows, int cols)
{
    __shared__ float line[130];
    int t = threadIdx.x, o0 = blockIdx.x * 128, f = blockIdx.y, out = cols - 2;
    long long b = blockIdx.z;
    float s = 0.0f;
    for (int r = 0; r < rows; r++) {
        const float *row = x + (b * rows + r) * cols;
        __syncthreads();
        if (o0 + t < cols) line[t] = row[o0 + t];
        if (t < 2 && o0 + 128 + t < cols) line[128 + t] = row[o0 + 127 + t];
        __syncthreads();
        if (o0 + t < out)
            for (int k = 0; k < 3; k++) s += line[t + k] * w[(f * rows + r) * 3 + k];
    }
    if (o0 + t < out) y[(b * features + f) * out + o0 + t] = s;
}
