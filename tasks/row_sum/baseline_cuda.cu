// The reduction that an eager framework launches for many long rows: a warp a row, sixteen rows a block, four
// sums a lane through 16-byte accesses where the row's alignment allows them, then shuffles.
//@ launch row_sum<<<ceil_div(rows, 16), dim3(32, 16)>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 16 + threadIdx.y, fours = cols % 4 == 0 ? cols / 4 : 0;
    if (r >= rows) return;
    const float *row = x + (long long)r * cols;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int c = threadIdx.x; c < fours; c += 32) {
        float4 v = reinterpret_cast<const float4 *>(row)[c];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += 32) sum.x += row[c];
    float total = (sum.x + sum.y) + (sum.z + sum.w);
    for (int lane = 16; lane > 0; lane /= 2) total += __shfl_down_sync(0xffffffffu, total, lane);
    if (threadIdx.x == 0) y[r] = total;
}
