// cp.async of 16 bytes where a row allows it, in three stages, with zeros for what lies outside.
// task: matmul
// expect: ok
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k)
__device__ void copy(float *to, const float *from, int bytes, int inside)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(inside ? 16 : 0));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(at), "l"(from), "r"(inside ? 4 : 0));
}
__device__ void fetch(float (*to)[16], const float *from, int r0, int c0, int rows, int cols)
{
    int t = threadIdx.y * 16 + threadIdx.x;
    if (cols % 4 == 0) {
        int r = t / 4, c = t % 4 * 4, inside = r0 + r < rows && c0 + c < cols;
        if (t < 64) copy(&to[r][c], inside ? from + (long long)(r0 + r) * cols + c0 + c : from, 16, inside);
    } else {
        int r = threadIdx.y, c = threadIdx.x, inside = r0 + r < rows && c0 + c < cols;
        copy(&to[r][c], inside ? from + (long long)(r0 + r) * cols + c0 + c : from, 4, inside);
    }
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ __align__(16) float as[3][16][16], bs[3][16][16];
    int i0 = blockIdx.y * 16, j0 = blockIdx.x * 16, steps = (k + 15) / 16;
    float sum = 0;
    for (int s = 0; s < 2; s++) {
        if (s < steps) fetch(as[s], a, i0, s * 16, m, k), fetch(bs[s], b, s * 16, j0, k, n);
        asm volatile("cp.async.commit_group;");
    }
    for (int s = 0; s < steps; s++) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (s + 2 < steps) fetch(as[(s + 2) % 3], a, i0, (s + 2) * 16, m, k), fetch(bs[(s + 2) % 3], b, (s + 2) * 16, j0, k, n);
        asm volatile("cp.async.commit_group;");
        for (int l = 0; l < 16; l++) sum += as[s % 3][threadIdx.y][l] * bs[s % 3][l][threadIdx.x];
    }
    int i = i0 + threadIdx.y, j = j0 + threadIdx.x;
    if (i < m && j < n) c[(long long)i * n + j] = sum;
}
