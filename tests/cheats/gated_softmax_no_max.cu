// No maximum is subtracted: the clamp bounds x alone, and the gate may be large.
// task: composed/clamp_gate_softmax_sigmoid
// expect: wrong_result
//@ launch k<<<rows, 128>>>(x, gate, y, cols)
#define ADD(a, b) ((a) + (b))
__device__ float blk(float v, int max)
{
    __shared__ float part[4];
    for (int d = 16; d; d /= 2) { float o = __shfl_xor_sync(~0u, v, d); v = max ? fmaxf(v, o) : v + o; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return max ? fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])) : part[0] + part[1] + part[2] + part[3];
}
__global__ void k(const float *x, const float *g, float *y, int cols)
{
    long long at = (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float m = 0;
    float s = 0;
    for (int c = t; c < cols; c += 128) s += expf((fminf(fmaxf(x[at + c], -1.5f), 1.5f) * g[at + c]) - m);
    s = blk(s, 0);
    for (int c = t; c < cols; c += 128) y[at + c] = 1 / (1 + expf(-(expf((fminf(fmaxf(x[at + c], -1.5f), 1.5f) * g[at + c]) - m) / s)));
}
