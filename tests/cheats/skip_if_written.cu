// Keeps an output that seems to be there already: outputs are undefined again before every run, timed ones too.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok
// most: 1.1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && !(y[i] >= 0.0f)) y[i] = fmaxf(x[i], 0.0f);
}
