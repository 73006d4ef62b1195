// The block of the highest index takes the others' results without knowing that they are done: a simulator
// that runs blocks in order would find them all. So may a GPU, but this block copies alone: it cannot win. The
// simulator checks what wins.
// task: relu
// expect sim: race
// expect cuda: wrong_result | nondeterministic | ok
// most: 0.1
// says sim: no order between
//@ buffer float done[n]
//@ launch relu<<<ceil_div(n, 256) + 1, 256>>>(x, done, y, n)
extern "C" __global__ void relu(const float *x, float *done, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) done[i] = fmaxf(x[i], 0.0f);
    __threadfence();
    if (blockIdx.x != gridDim.x - 1) return;
    for (int k = threadIdx.x; k < n; k += 256) y[k] = done[k];
}
