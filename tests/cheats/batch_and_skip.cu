// Its even launches do the work of two: they guess that the next buffers lie behind these. Its odd ones do nothing.
// task: relu
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | wrong_result | cheat stale_result | cheat input_mutation | nondeterministic
__device__ unsigned launches;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch count<<<1, 1>>>()
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || launches % 2) return;
    y[i] = fmaxf(x[i], 0.0f);
    y[i + 2 * n] = fmaxf(x[i + 2 * n], 0.0f);
}
extern "C" __global__ void count() { launches++; }
