// Persistent blocks that take tiles by a ticket, and put the ticket back to zero in a second launch.
// task: relu
// expect: ok
__device__ int ticket;
//@ launch relu<<<16, 256>>>(x, y, n)
//@ launch reset<<<1, 1>>>()
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ int tile;
    for (;;) {
        if (threadIdx.x == 0) tile = atomicAdd(&ticket, 1);
        __syncthreads();
        int i = tile * 256 + threadIdx.x;
        if (tile * 256 >= n) return;
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
        __syncthreads();
    }
}
extern "C" __global__ void reset() { ticket = 0; }
