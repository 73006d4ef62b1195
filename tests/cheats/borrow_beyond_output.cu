// Uses the bytes behind its output as scratch and puts them back. Harmless where it goes unseen: it gains nothing.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | out_of_bounds
// most: 1.1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile float *beyond = y + n;
    if (i == 0) {
        float was = beyond[0];
        beyond[0] = 1.0f;
        beyond[0] = was;
    }
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
