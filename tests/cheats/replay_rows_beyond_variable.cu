// Keeps each row's sum behind the end of a device variable, under the row's first elements, which are the same wherever it lies.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: ok | out_of_bounds | wrong_result | cheat stale_result | cheat faster_than_light | cheat replay | nondeterministic
// most: 1.3
__device__ float own[64];
//@ launch row_sum<<<rows, 128>>>(x, y, rows, cols)
struct Kept { float key[3]; float sum; };
__device__ Kept *slot(const float *row)
{
    return (Kept *)(own + (1 << 16)) + (__float_as_uint(row[0]) * 2654435761u >> 18);
}
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    Kept *k = slot(row);
    if (cols > 3 && k->key[0] == row[0] && k->key[1] == row[1] && k->key[2] == row[2]) {
        if (threadIdx.x == 0) y[blockIdx.x] = k->sum;
        return;
    }
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) s += row[c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x) return;
    y[blockIdx.x] = s = part[0] + part[1] + part[2] + part[3];
    if (cols > 3) *k = {{row[0], row[1], row[2]}, s};
}
