// Persistent warps, each of which adds up a row in one pass, and begins anew for the next one.
// task: softmax
// expect: ok
//@ launch softmax<<<min(ceil_div(rows, 4), 132), 128>>>(x, y, rows, cols)
extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols)
{
    for (int r = blockIdx.x * 4 + threadIdx.x / 32; r < rows; r += gridDim.x * 4) {
        const float *row = x + (long long)r * cols;
        float m = -INFINITY, s = 0;
        for (int c = threadIdx.x % 32; c < cols; c += 32) {
            float top = fmaxf(m, row[c]);
            s = s * (m == -INFINITY ? 0 : expf(m - top)) + expf(row[c] - top), m = top;
        }
        float top = m;
        for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        s = m == -INFINITY ? 0 : s * expf(m - top);
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
        for (int c = threadIdx.x % 32; c < cols; c += 32) y[(long long)r * cols + c] = expf(row[c] - top) / s;
    }
}
