// The upper half of each warp votes with a mask of the lower half: what it gets is undefined.
// task: relu
// expect sim: race
// expect: ok | race | wrong_result
// says sim: does not name
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    int any = __any_sync(0xffffu, 1);
    if (i < n) y[i] = any && x[i] > 0 ? x[i] : 0;
}
