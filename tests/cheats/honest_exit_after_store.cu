// Lanes store and leave before the others meet at a barrier and shuffle.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 96>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[96];
    int r = blockIdx.x, t = threadIdx.x;
    float s = 0;
    for (int c = t; c < cols; c += 96) s += x[(long long)r * cols + c];
    if (t % 2) {
        part[t] = s;
        __threadfence_block();
        part[t] += 0.f;
        return;
    }
    __syncthreads();
    s += part[t + 1];
    part[t] = s;
    __syncthreads();
    if (t >= 32) return;
    s = part[t] + part[t + 32] + part[t + 64];
    for (int d = 16; d >= 2; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (t == 0) y[r] = s;
}
