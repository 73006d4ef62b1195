// Lanes leave early; the rest vote and shuffle under the mask of those that are there. Most blocks of the grid are empty.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows * 3, 64>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x, t = threadIdx.x;
    if (r >= rows || t >= 48) return;
    __shared__ float half[2];
    float s = 0;
    for (int c = t; c < cols; c += 48) s += x[(long long)r * cols + c];
    unsigned here = t < 32 ? 0xffffffffu : 0x0000ffffu;
    int width = t < 32 ? 32 : 16;
    for (int d = width / 2; d; d /= 2) s += __shfl_down_sync(here, s, d, width);
    if (t % 32 == 0) half[t / 32] = s;
    __syncthreads();
    if (t == 0) y[r] = half[0] + half[1];
}
