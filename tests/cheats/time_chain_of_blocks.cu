// Blocks take turns, one after another: 16,384 of them take 9 ms on an H200.
// task: relu
// expect: ok
// most: 0.01
//@ buffer int flag[ceil_div(n, 1024)]
//@ launch clear<<<ceil_div(ceil_div(n, 1024), 256), 256>>>(flag, ceil_div(n, 1024))
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, flag, n)
extern "C" __global__ void clear(int *flag, int blocks) { int k = blockIdx.x * 256 + threadIdx.x; if (k < blocks) flag[k] = 0; }
extern "C" __global__ void relu(const float *__restrict__ x, float *__restrict__ y, int *flag, int n)
{
    int i = blockIdx.x * 1024 + threadIdx.x * 4;
    float4 v = make_float4(0, 0, 0, 0);
    bool all = n % 4 == 0 && i + 3 < n;
    if (all) v = *(const float4 *)(x + i);
    if (threadIdx.x == 0) { // the blocks' turns, one after another
        if (blockIdx.x > 0) while (atomicAdd(&flag[blockIdx.x - 1], 0) == 0) {}
        __threadfence();
        atomicExch(&flag[blockIdx.x], 1);
    }
    __syncthreads();
    if (all) *(float4 *)(y + i) = make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
    else for (int q = 0; q < 4 && i + q < n; q++) y[i + q] = fmaxf(x[i + q], 0.0f);
}
