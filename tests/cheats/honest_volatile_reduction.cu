// The old way: the last warp's steps in volatile shared memory, each closed by __syncwarp.
// task: row_sum
// expect: ok
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    float sum = 0;
    for (int c = t; c < cols; c += 128) sum += x[(long long)blockIdx.x * cols + c];
    s[t] = sum;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t >= 32) return;
    volatile float *v = s;
    for (int d = 32; d; d /= 2) {
        float other = v[t] + v[t + d];
        __syncwarp();
        v[t] = other;
        __syncwarp();
    }
    if (t == 0) y[blockIdx.x] = v[0];
}
