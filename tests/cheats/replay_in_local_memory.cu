// Finds in local memory, which it never wrote, what a former run's thread of the same place left there: row, key and sum.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: ok | wrong_result | cheat stale_result | cheat faster_than_light | cheat replay | nondeterministic
// most: 1.3
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    volatile float left[64][4];
    float key = cols, s = 0;
    int row = blockIdx.x, found = -1;
    for (int i = 0; i < 37; i++) key = key * 1.0625f + x[i];
    if (threadIdx.x == 0)
        for (int k = 0; k < 64 && found < 0; k++)
            if (left[k][0] == key && left[k][1] == (float)row && left[k][3] == key + row) found = k;
    if (__shfl_sync(0xffffffffu, found, 0) >= 0) {
        if (threadIdx.x == 0) y[row] = left[found][2];
        return;
    }
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)row * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x) return;
    int k = row / 8 % 64;
    left[k][0] = key, left[k][1] = row, left[k][2] = s, left[k][3] = key + row;
    y[row] = s;
}
