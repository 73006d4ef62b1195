// A chain of blocks by flags that are released and acquired at the scope of one block.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic | timeout
//@ buffer float part[rows * 4]
//@ buffer unsigned flag[rows * 4]
//@ launch clear<<<ceil_div(rows * 4, 128), 128>>>(flag, rows * 4)
//@ launch split<<<dim3(4, rows), 128>>>(x, part, flag, y, cols)
__device__ unsigned heard(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void tell(unsigned *p)
{
    asm volatile("st.release.cta.u32 [%0], 1;" ::"l"(p) : "memory");
}
__global__ void clear(unsigned *flag, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) flag[i] = 0;
}
__global__ void split(const float *x, float *part, unsigned *flag, float *y, int cols)
{
    __shared__ float lanes[4];
    int t = threadIdx.x;
    long long r = blockIdx.y;
    float s = 0.0f;
    for (int c = blockIdx.x * 128 + t; c < cols; c += 512) s += x[r * cols + c];
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (t % 32 == 0) lanes[t / 32] = s;
    __syncthreads();
    if (t == 0) {
        s = lanes[0] + lanes[1] + lanes[2] + lanes[3];
        // chain: each block waits for the one before it
        if (blockIdx.x > 0) {
            while (heard(flag + r * 4 + blockIdx.x - 1) == 0) ;
            s += part[r * 4 + blockIdx.x - 1];
        }
        if (blockIdx.x == 3) y[r] = s;
        part[r * 4 + blockIdx.x] = s;
        tell(flag + r * 4 + blockIdx.x);
    }
}
