// A tile of which only the rows inside the matrix are copied: sums of the others are never stored.
// task: matmul
// expect: ok
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), 256>>>(a, b, c, m, n, k)
__device__ void copy(float *to, const float *from, bool inside, bool copied)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("{ .reg .pred p, q; setp.eq.u32 p, %2, 0; setp.ne.u32 q, %3, 0;\n"
                 "@q cp.async.ca.shared.global [%0], [%1], 4, p; }" ::"r"(at),
                 "l"(from), "r"((int)inside), "r"((int)copied));
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][17], bs[16][17];
    int ty = threadIdx.x / 16, tx = threadIdx.x % 16, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int l = 0; l < k; l += 16) {
        copy(&as[ty][tx], a + (long long)row * k + l + tx, l + tx < k, row < m);
        copy(&bs[ty][tx], b + (long long)(l + ty) * n + col, l + ty < k, col < n);
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        for (int e = 0; e < 16; e++) sum += as[ty][e] * bs[e][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = sum;
}
