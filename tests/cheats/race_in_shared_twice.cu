// A value that races goes through shared memory and a matrix load before it is used.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 64), 64>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(16) float s[64], t[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned m, at = (unsigned)__cvta_generic_to_shared(&t[threadIdx.x / 32 * 32 + threadIdx.x % 8 * 4]);
    s[threadIdx.x] = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
    t[threadIdx.x] = s[threadIdx.x ^ 32];
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(m) : "r"(at) : "memory");
    if ((i ^ 32) < n) y[i ^ 32] = __uint_as_float(m);
}
