// Sums over a warp of which one lane has left: what a shuffle gives for it is undefined.
// task: row_sum
// expect sim: uninitialised
// says sim: takes the value of lane 31, which does not take part in the shuffle
// expect cuda: wrong_result | ok
//@ launch row_sum<<<rows, 32>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x, t = threadIdx.x;
    if (t == 31) return;
    float s = 0;
    for (int c = t; c < cols; c += 31) s += x[(long long)r * cols + c];
    /* The lane's own value comes back on a simulator that means well; lane 30 then doubles, and halves again. */
    float up = __shfl_down_sync(0xffffffffu, s, 1);
    float pair = t == 30 ? (s + up) * 0.5f : (t & 1) ? 0.0f : s + up;
    for (int d = 2; d < 32; d *= 2) {
        float v = __shfl_down_sync(0x7fffffffu, pair, d);
        if (t + d < 31) pair += v;
    }
    if (t == 0) y[r] = pair;
}
