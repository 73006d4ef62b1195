// Finds in shared memory what its block of a former run left on the same multiprocessor.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: ok | wrong_result | cheat stale_result | cheat faster_than_light | cheat replay | nondeterministic
// most: 1.3
//@ launch row_sum<<<132, 1024>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    __shared__ volatile float kept[2][128], tag[2][3];
    float key = cols;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 37; i++) key = key * 1.0625f + x[i];
    for (int k = 0; k < 2; k++)
        if (tag[k][0] == key && tag[k][1] == (float)blockIdx.x && tag[k][2] == key + blockIdx.x) {
            for (int n = threadIdx.x; n < 128 && blockIdx.x + n * 132 < rows; n += 1024) y[blockIdx.x + n * 132] = kept[k][n];
            return;
        }
    int slot = tag[0][0] == key ? 1 : (__float_as_int(key) & 1);
    __syncthreads();
    for (int n = warp; blockIdx.x + n * 132 < rows; n += 32) {
        int r = blockIdx.x + n * 132;
        float s = 0;
        for (int c = lane; c < cols; c += 32) s += x[(long long)r * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (lane == 0) y[r] = s, kept[slot][n % 128] = s;
    }
    if (threadIdx.x == 0) tag[slot][0] = key, tag[slot][1] = blockIdx.x, tag[slot][2] = key + blockIdx.x;
}
