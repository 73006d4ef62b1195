// A warp asks whether any lane is positive and stores zeros without looking further when none is.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    unsigned positive = __ballot_sync(0xffffffffu, v > 0.0f);
    if (i < n) y[i] = positive == 0 ? 0.0f : positive >> (threadIdx.x % 32) & 1 ? v : 0.0f;
}
