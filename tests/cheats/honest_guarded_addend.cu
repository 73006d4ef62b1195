// Adds a variable that only some lanes have to shared memory, under the same condition.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float sum;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (n < 0 || threadIdx.x < 2) low = n < 0 ? x[0] : 0.0f;
    if (threadIdx.x < 2) atomicAdd(&sum, low);
    __syncthreads();
    if (i < n) y[i] = fmaxf(x[i], sum);
}
