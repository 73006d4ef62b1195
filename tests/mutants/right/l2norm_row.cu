// A block a row, its sum in double.
// task: k1_39_l2norm
//@ launch normalize<<<rows, 256>>>(x, div, cols)
__global__ void normalize(const float *x, float *y, int cols)
{
    __shared__ double part[256];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    double sum = 0.0;
    for (int c = t; c < cols; c += 256) sum += (double)row[c] * row[c];
    part[t] = sum;
    for (int h = 128; h > 0; h /= 2) {
        __syncthreads();
        if (t < h) part[t] += part[t + h];
    }
    __syncthreads();
    float norm = (float)sqrt(part[0]);
    for (int c = t; c < cols; c += 256) y[(long long)blockIdx.x * cols + c] = row[c] / norm;
}
