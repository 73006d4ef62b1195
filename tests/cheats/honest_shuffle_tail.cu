// Half a warp reduces with the mask of a whole one: what it takes from lanes that do not exist is not used.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 48>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[2];
    int t = threadIdx.x, lane = t % 32, lanes = t < 32 ? 32 : 16;
    float s = 0;
    for (int c = t; c < cols; c += 48) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) {
        float other = __shfl_down_sync(0xffffffffu, s, d);
        if (lane + d < lanes) s += other;
    }
    if (lane == 0) part[t / 32] = s;
    __syncthreads();
    if (t == 0) y[blockIdx.x] = part[0] + part[1];
}
