// Lanes wait for other lanes of their warp, in both directions: each lane makes progress, since Volta. Chains
// of eight lanes: one of all lanes takes the simulator four times as long.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 64), 64>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile int ready, turns[64];
    __shared__ volatile float top;
    int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    float v = i < n ? x[i] : 0;
    if (t == 0) ready = 0;
    turns[t] = 0;
    __syncthreads();
    if (t % 8 == 0) {
        while (!ready) {}
    }
    __threadfence_block();
    if (t == 5) {
        top = 0;
        __threadfence_block();
        ready = 1;
    }
    if (t % 8) {
        while (!turns[t - 1]) {}
    }
    __threadfence_block();
    turns[t] = 1;
    if (i < n) y[i] = v > top ? v : top;
}
