// Right for the sizes of the checks; at the timed one it relies on blocks that run in order.
// task: relu
// expect sim: race
// expect cuda: wrong_result | nondeterministic
// says sim: sim n=524288
//@ buffer float done[n]
//@ launch relu<<<ceil_div(n, 256) + 1, 256>>>(x, done, y, n)
extern "C" __global__ void relu(const float *x, float *done, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n <= 16384) {
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
        return;
    }
    if (i < n) done[i] = fmaxf(x[i], 0.0f);
    __threadfence();
    if (i < 256) return;
    i -= 256;
    if (i < n) y[i] = done[i];
}
