// A lane waits for a flag that another lane sets only behind a barrier of both.
// task: relu
// expect: timeout
//@ launch relu<<<ceil_div(n, 64), 64>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile int ready;
    int i = blockIdx.x * 64 + threadIdx.x;
    ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        while (!ready) {}
    }
    __syncwarp();
    if (threadIdx.x == 1) ready = 1;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
