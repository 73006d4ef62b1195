// Each eight lanes of a warp reduce, by masks that are data.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31;
    int last = __reduce_max_sync(0xffu << (lane & 24), lane);
    if (i < n) y[i] = last == (lane | 7) ? (x[i] > 0.0f ? x[i] : 0.0f) : -1.0f;
}
