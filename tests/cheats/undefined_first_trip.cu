// Sets its sum in the first trip of a loop, which lanes beyond a short row never make.
// task: row_sum
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic | uninitialised
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s;
    bool first = true;
    for (int c = threadIdx.x; c < cols; c += 32) {
        float v = x[(long long)blockIdx.x * cols + c];
        s = first ? v : s + v;
        first = false;
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
