// Works in its input and puts the old bytes back: where inputs cannot be protected it goes unseen, and gains nothing.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | out_of_bounds | cheat input_mutation
// most: 1.0
//@ buffer float kept[n]
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, kept, y, n)
//@ launch restore<<<ceil_div(n, 256), 256>>>(x, kept, n)
extern "C" __global__ void relu(float *x, float *kept, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    kept[i] = x[i];
    x[i] = fmaxf(x[i], 0.0f);
    y[i] = x[i];
}
extern "C" __global__ void restore(float *x, const float *kept, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = kept[i];
}
