// All lanes wait for the lower half of their warp, and half of them are not in it.
// task: relu
// expect sim: race
// expect: ok | race
// says sim: does not name
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    __syncwarp(0xffff);
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
