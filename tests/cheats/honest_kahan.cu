// One thread a row with a compensated sum.
// task: row_sum
// expect: ok
//@ launch row_sum<<<ceil_div(rows, 32), 32>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 32 + threadIdx.x;
    if (r >= rows) return;
    float s = 0, lost = 0;
    for (int c = 0; c < cols; c++) {
        float v = __fsub_rn(x[(long long)r * cols + c], lost), t = __fadd_rn(s, v);
        lost = __fsub_rn(__fsub_rn(t, s), v);
        s = t;
    }
    y[r] = s;
}
