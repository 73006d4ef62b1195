// Reads in one warp what another writes, volatile instead of a barrier.
// task: relu
// expect sim: race
// expect cuda: wrong_result | nondeterministic
// says sim: blocks and warps
//@ launch relu<<<ceil_div(n, 64), 64>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile float s[64];
    int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (t < 32) {
        s[t] = i < n ? x[i] : 0.0f;
        s[t + 32] = i + 32 < n ? x[i + 32] : 0.0f;
    }
    if (i < n) y[i] = fmaxf(s[t], 0.0f);
}
