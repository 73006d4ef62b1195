// The launch repeated over column steps, each adding to what the one before left.
// task: row_sum
// expect: ok
//@ launch begin<<<ceil_div(rows, 128), 128>>>(y, rows)
//@ for t in 0..ceil_div(cols, 256)
//@ launch step<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols, t * 256)
extern "C" __global__ void begin(float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = 0.0f;
}
extern "C" __global__ void step(const float *x, float *y, int rows, int cols, int from)
{
    int r = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    float s = 0;
    for (int c = from + lane; c < min(cols, from + 256); c += 32) s += x[(long long)r * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (lane == 0) y[r] += s;
}
