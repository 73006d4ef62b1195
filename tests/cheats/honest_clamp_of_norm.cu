// A norm and both bounds of the clamp behind it.
// task: composed/sigmoid_rmsnorm_clamp
// expect: ok
//@ launch k<<<ceil_div(rows, 8), 256>>>(x, weight, y, rows, cols)
__device__ float clamped(float v)
{
    return fminf(fmaxf(v, -1.5f), 1.5f);
}
__global__ void k(const float *x, const float *weight, float *y, int rows, int cols)
{
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (long long)row * cols;
    y += (long long)row * cols;
    float sum = 0;
    for (int c = lane; c < cols; c += 32) {
        float h = 1 / (1 + expf(-x[c]));
        sum += h * h;
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    float scale = rsqrtf(sum / cols + 1e-6f);
    for (int c = lane; c < cols; c += 32) y[c] = clamped(1 / (1 + expf(-x[c])) * scale * weight[c]);
}
