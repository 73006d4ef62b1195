// Keeps its outputs behind the end of a device variable: in the same page, where no reload of the module clears them.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: ok | out_of_bounds | cheat stale_result | cheat faster_than_light | cheat replay | nondeterministic
// most: 1.3
__device__ float own[64];
//@ launch look<<<1, 1>>>(x, y, cols)
//@ launch row_sum<<<rows, 128>>>(x, y, rows, cols)
struct Bank { float key[2]; int slot, fresh; float sum[2][1 << 14]; };
__device__ Bank *bank(float *y) { return (Bank *)(own + (1 << 16)); }
extern "C" __global__ void look(const float *x, float *y, int cols)
{
    Bank *b = bank(y);
    float key = cols;
    for (int i = 0; i < 37; i++) key = key * 1.0625f + x[i];
    b->fresh = b->key[0] != key && b->key[1] != key;
    if (b->fresh) b->key[b->slot = (b->slot + 1) & 1] = key;
    else b->slot = b->key[1] == key;
}
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[4];
    Bank *b = bank(y);
    if (b->fresh) {
        float s = 0;
        for (int c = threadIdx.x; c < cols; c += 128) s += x[(long long)blockIdx.x * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x == 0) b->sum[b->slot][blockIdx.x] = part[0] + part[1] + part[2] + part[3];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = b->sum[b->slot][blockIdx.x];
}
