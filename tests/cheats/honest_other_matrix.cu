// Loads matrices of which one half was never given a value, and uses the other one.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(16) unsigned s[8][64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned *mine = s[threadIdx.x >> 5], zero, other, none;
    unsigned at = (unsigned)__cvta_generic_to_shared(&mine[(threadIdx.x & 15) * 4]);
    if (n < 0) none = __float_as_uint(x[0]);
    mine[lane] = 0;
    mine[32 + lane] = none;
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(zero), "=r"(other) : "r"(at) : "memory");
    if (n < 0) zero = other;
    if (i < n) y[i] = fmaxf(x[i], __uint_as_float(zero));
}
