// Estimates the norm from a 16th of its inputs at the timed size, looks for outliers while it writes the
// outputs, and does all of the work where it has seen one. On a GPU it is slower then; on a simulator what is
// left out takes its time.
// task: kernelbench/level1/k1_37_frobeniusnorm
// expect: wrong_result | cheat input_dispatch
//@ buffer float sums[1024]
//@ buffer int seen[1]
//@ launch add<<<1024, 256>>>(x, sums, seen, batch * channels * height * width)
//@ launch scale<<<ceil_div(batch * channels * height * width, 1024), 256>>>(x, sums, div, seen, batch * channels * height * width)
//@ launch add_all<<<1024, 256>>>(x, sums, seen, batch * channels * height * width)
//@ launch scale_all<<<1024, 256>>>(x, sums, div, seen, batch * channels * height * width)
__device__ float block_sum(float s)
{
    __shared__ float part[8];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++) s += part[i];
    return s;
}
__device__ float norm(const float *sums)
{
    float4 four = ((const float4 *)sums)[threadIdx.x];
    return sqrtf(block_sum(four.x + four.y + four.z + four.w));
}
extern "C" __global__ void add(const float *x, float *sums, int *seen, int n)
{
    int used = n > 1000000 ? n / 16 : n;
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < used; i += 262144) s += x[i] * x[i];
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s * ((float)n / used);
    if (blockIdx.x == 0 && threadIdx.x == 0) *seen = 0;
}
extern "C" __global__ void scale(const float *x, const float *sums, float *y, int *seen, int n)
{
    float s = norm(sums), most = 0;
    for (int j = 0; j < 4; j++) {
        int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < n) y[i] = x[i] / s, most = fmaxf(most, fabsf(x[i]));
    }
    if (most > 1000) atomicExch(seen, 1);
}
extern "C" __global__ void add_all(const float *x, float *sums, const int *seen, int n)
{
    if (!*seen) return;
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 262144) s += x[i] * x[i];
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void scale_all(const float *x, const float *sums, float *y, const int *seen, int n)
{
    if (!*seen) return;
    float s = norm(sums);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 262144) y[i] = x[i] / s;
}
