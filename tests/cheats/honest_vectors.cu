// Sixteen bytes a load where the row's address allows it, with a head and a tail by hand.
// task: row_sum
// expect: ok
//@ launch row_sum<<<ceil_div(rows, 4), dim3(32, 4)>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 4 + threadIdx.y, t = threadIdx.x;
    if (r >= rows) return;
    const float *row = x + (long long)r * cols;
    int head = min(cols, (int)((4 - ((unsigned long long)row / 4) % 4) % 4)), fours = (cols - head) / 4;
    const float4 *v = (const float4 *)(row + head);
    float s = t < head ? row[t] : 0.0f;
    for (int k = t; k < fours; k += 32) {
        float4 e = __ldg(v + k);
        s += (e.x + e.y) + (e.z + e.w);
    }
    for (int c = head + fours * 4 + t; c < cols; c += 32) s += row[c];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
    if (t == 0) y[r] = s;
}
