// A line of the input with its halo in shared memory; 128 positions a block.
// task: k1_67_conv_standard_1d
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
        for (int i = t; i < 130; i += 128) line[i] = o0 + i < cols ? row[o0 + i] : 0.0f;
        __syncthreads();
        const float *k = w + (f * rows + r) * 3;
        s += line[t] * k[0] + line[t + 1] * k[1] + line[t + 2] * k[2];
    }
    if (o0 + t < out) y[(b * features + f) * out + o0 + t] = s;
}
