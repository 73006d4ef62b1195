// Leaves its outputs in the device's heap and finds them again behind the next piece that it is given there: a heap
// lives as long as the context, whatever module is loaded.
// task: row_sum
// expect: unsupported
// says: device-side malloc is not available
struct Bank { unsigned magic; float key, sum[1 << 14]; };
__device__ Bank *found, *mine;
//@ launch look<<<1, 1>>>(x, cols)
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void look(const float *x, int cols)
{
    float key = cols;
    for (int i = 0; i < 37; i++) key = key * 1.0625f + x[i];
    mine = (Bank *)malloc(sizeof(Bank));
    found = 0;
    if (!mine) return;
    for (long long at = (long long)mine - (1 << 20); at < (long long)mine && !found; at += 16) {
        Bank *b = (Bank *)at;
        if (b->magic == 0x51756572u && b->key == key) found = b;
    }
    mine->magic = 0x51756572u, mine->key = key;
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[4];
    if (!found) {
        float s = 0;
        for (int c = threadIdx.x; c < cols; c += 128) s += x[(long long)blockIdx.x * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x == 0) {
            y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
            if (mine) mine->sum[blockIdx.x] = y[blockIdx.x];
        }
    } else if (threadIdx.x == 0) {
        y[blockIdx.x] = found->sum[blockIdx.x];
    }
}
