// The sum over k in steps of the plan, each adding to what the one before left in the output.
// task: matmul
// expect: ok
//@ launch zero<<<ceil_div(m * n, 256), 256>>>(c, m * n)
//@ for t in 0..ceil_div(k, 64)
//@ launch step<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k, t * 64)
extern "C" __global__ void zero(float *c, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = 0.0f;
}
extern "C" __global__ void step(const float *a, const float *b, float *c, int m, int n, int k, int from)
{
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= m || j >= n) return;
    float s = c[(long long)i * n + j];
    for (int l = from; l < min(k, from + 64); l++) s += a[(long long)i * k + l] * b[(long long)l * n + j];
    c[(long long)i * n + j] = s;
}
