// The fast exponential and division: a few units in the last place, well inside of what is allowed.
// task: softmax
// expect: ok
//@ launch softmax<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 4 + threadIdx.x / 32, t = threadIdx.x % 32;
    if (r >= rows) return;
    const float *row = x + (long long)r * cols;
    float top = -INFINITY, s = 0;
    for (int c = t; c < cols; c += 32) top = fmaxf(top, row[c]);
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    for (int c = t; c < cols; c += 32) s += __expf(row[c] - top);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    for (int c = t; c < cols; c += 32) y[(long long)r * cols + c] = __fdividef(__expf(row[c] - top), s);
}
