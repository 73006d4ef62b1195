// Odd lanes wait in a tile of eight for the even ones, which never come.
// task: relu
// expect sim: race
// expect: ok | race | timeout
// says sim: never reach this operation
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x, any = 1;
    if (threadIdx.x & 1) any = __any_sync(0xffu << (threadIdx.x & 24), 1);
    if (i < n) y[i] = any && x[i] > 0 ? x[i] : 0;
}
