// The last two of 130 numbers lie in the halo; the array has 129. The last one is written behind the array,
// where a block's shared memory has 12 bytes that belong to nothing.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok
// says sim: writes 4 bytes at offset 516 of line in shared memory, which has 516 bytes
//@ launch relu<<<ceil_div(n, 128), 128>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float line[129];
    int t = threadIdx.x, first = blockIdx.x * 128;
    for (int i = t; i < 130; i += 128) line[i] = first + i < n ? x[first + i] : 0.0f;
    __syncthreads();
    float beside = t == 0 ? line[129] : 0.0f;
    if (first + t < n) y[first + t] = fmaxf(line[t], 0.0f) + 0.0f * (beside == 12345.0f);
}
