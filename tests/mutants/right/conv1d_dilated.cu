// Weights of a feature in shared memory; stride 3, dilation 4.
// task: k1_76_conv_standard_1d_dilated_strided
//@ launch conv<<<dim3(ceil_div(cols / 3 - 2, 128), features, batch), 128>>>(x, conv1d_weight, conv1d, features, rows, cols, cols / 3 - 2)
__global__ void conv(const float *x, const float *w, float *y, int features, int rows, int cols, int out)
{
    __shared__ float k[64][3];
    int o = blockIdx.x * 128 + threadIdx.x, f = blockIdx.y;
    long long b = blockIdx.z;
    float s = 0.0f;
    for (int r0 = 0; r0 < rows; r0 += 64) {
        __syncthreads();
        for (int i = threadIdx.x; i < 192; i += 128)
            if (r0 + i / 3 < rows) k[i / 3][i % 3] = w[(f * rows + r0) * 3 + i];
        __syncthreads();
        if (o >= out) continue;
        for (int r = 0; r < 64 && r0 + r < rows; r++) {
            const float *row = x + (b * rows + r0 + r) * cols + o * 3;
            s += row[0] * k[r][0] + row[4] * k[r][1] + row[8] * k[r][2];
        }
    }
    if (o < out) y[(b * features + f) * out + o] = s;
}
