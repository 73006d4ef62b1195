// Asks for the next tile while it works on this one.
// task: diag_matmul
// expect: ok
//@ launch scale<<<min(n, 512), 128>>>(d, b, c, n, m)
extern "C" __global__ void scale(const float *d, const float *b, float *c, int n, int m)
{
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        const float *next = b + (long long)(i + gridDim.x) * m;
        if (i + gridDim.x < n)
            for (int j = threadIdx.x * 32; j < m; j += 128 * 32) asm volatile("prefetch.global.L2 [%0];" : : "l"(next + j));
        float f = d[i];
        for (int j = threadIdx.x; j < m; j += 128) c[(long long)i * m + j] = f * b[(long long)i * m + j];
    }
}
