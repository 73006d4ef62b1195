// Eight lanes name sixteen, the others all 32: no group passes one mask.
// task: relu
// expect sim: race
// expect: ok | race | timeout
// says sim: all lanes of a group pass the same mask
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31;
    int any = __any_sync(lane < 8 ? 0xffffu : 0xffffffffu, 1);
    if (i < n) y[i] = any && x[i] > 0 ? x[i] : 0;
}
