// A block finds another one's flag by a relaxed load, with no fence behind it.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ buffer float part[rows * 4]
//@ buffer unsigned flag[rows * 4]
//@ launch clear<<<ceil_div(rows * 4, 128), 128>>>(flag, rows * 4)
//@ launch split<<<dim3(4, rows), 128>>>(x, part, flag, y, cols)
__device__ unsigned heard(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void tell(unsigned *p)
{
    asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(p) : "memory");
}
__global__ void clear(unsigned *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) count[i] = 0;
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
    unsigned *mine = flag + r * 4 + blockIdx.x, *prev = mine - 1;
    if (t == 0 && blockIdx.x > 0) { while (heard(prev) == 0) ; }
    __syncthreads();
    if (t == 32) {
        s = lanes[0] + lanes[1] + lanes[2] + lanes[3];
        if (blockIdx.x > 0) s += part[r * 4 + blockIdx.x - 1];
        if (blockIdx.x == 3) y[r] = s;
        part[r * 4 + blockIdx.x] = s;
    }
    __syncthreads();
    if (t == 0) { tell(mine); }
}
