// A kernel with the name of functions that CUDA's headers declare.
// task: relu
// expect: ok
//@ launch norm<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void norm(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
