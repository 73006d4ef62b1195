// Replays its output when the first numbers of the input are those of the last time. It gets a
// verdict, but no speed: the timed input is new.
// task: relu
// expect: ok
__device__ float bank[1 << 20];
__device__ float first[32];
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch remember<<<1, 31>>>(x)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, same = 1;
    if (i >= n) return;
    for (int k = 0; k < 31; k++) same &= first[k] == x[k];
    if (!same) bank[i] = fmaxf(x[i], 0.0f);
    y[i] = bank[i];
}
extern "C" __global__ void remember(const float *x) { first[threadIdx.x] = x[threadIdx.x]; }
