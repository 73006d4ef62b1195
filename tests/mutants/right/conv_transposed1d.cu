// Each output gathers its three inputs; a line with its halo in shared memory.
// task: k1_64_conv_transposed_1d
//@ launch conv<<<dim3(ceil_div(cols + 2, 128), inner, batch), 128>>>(x, conv1d_transpose_weight, conv_transpose1d, rows, inner, cols)
__global__ void conv(const float *x, const float *w, float *y, int rows, int inner, int cols)
{
    __shared__ float line[130];
    int t = threadIdx.x, o0 = blockIdx.x * 128, f = blockIdx.y;
    long long b = blockIdx.z;
    float s = 0.0f;
    for (int r = 0; r < rows; r++) {
        const float *row = x + (b * rows + r) * cols;
        for (int i = t; i < 130; i += 128) {
            int at = o0 + i - 2;
            line[i] = at >= 0 && at < cols ? row[at] : 0.0f;
        }
        __syncthreads();
        const float *k = w + ((long long)r * inner + f) * 3;
        s += line[t + 2] * k[0] + line[t + 1] * k[1] + line[t] * k[2];
        __syncthreads();
    }
    if (o0 + t < cols + 2) y[(b * inner + f) * (cols + 2) + o0 + t] = s;
}
