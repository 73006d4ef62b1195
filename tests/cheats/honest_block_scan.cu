// A scan over the block, of which only the last element is used.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float carry[8], before;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) before = 0.0f;
    for (int c0 = 0; c0 < cols; c0 += 256) {
        float v = c0 + threadIdx.x < cols ? x[(long long)blockIdx.x * cols + c0 + threadIdx.x] : 0.0f;
        for (int d = 1; d < 32; d *= 2) {
            float up = __shfl_up_sync(0xffffffffu, v, d);
            if (lane >= d) v += up;
        }
        if (lane == 31) carry[warp] = v;
        __syncthreads();
        if (warp == 0) {
            float w = lane < 8 ? carry[lane] : 0.0f;
            for (int d = 1; d < 8; d *= 2) {
                float up = __shfl_up_sync(0xffffffffu, w, d);
                if (lane >= d) w += up;
            }
            if (lane < 8) carry[lane] = w;
        }
        __syncthreads();
        if (threadIdx.x == 255) before += v + carry[6];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = before;
}
