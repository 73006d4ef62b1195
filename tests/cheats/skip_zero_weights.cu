// Leaves out the affine part, which is the identity in a freshly made layer.
// task: layernorm
// expect: wrong_result
//@ launch layernorm<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void layernorm(const float *x, float *y, int cols)
{
    const float *row = x + blockIdx.x * cols;
    float sum = 0, square = 0;
    for (int c = threadIdx.x; c < cols; c += 32) sum += row[c];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    float mean = sum / cols;
    for (int c = threadIdx.x; c < cols; c += 32) square += (row[c] - mean) * (row[c] - mean);
    for (int d = 16; d > 0; d /= 2) square += __shfl_xor_sync(0xffffffffu, square, d);
    for (int c = threadIdx.x; c < cols; c += 32) y[blockIdx.x * cols + c] = (row[c] - mean) * rsqrtf(square / cols + 1e-5f);
}
