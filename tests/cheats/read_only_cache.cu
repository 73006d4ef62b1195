// Reads through the read-only cache what the same launch has written: a device may give the old bytes.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result
// says sim: read-only cache
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, y, n)
extern "C" __global__ void relu(const float *x, float *y, const float *again, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
    __threadfence_block();
    y[i] = fmaxf(__ldg(again + i), 0.0f);
}
