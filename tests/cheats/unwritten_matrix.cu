// Loads matrices from shared memory that was never written.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | wrong_result | nondeterministic
// says sim: no thread of the block has written
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(16) unsigned s[8][32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x >> 5][(threadIdx.x & 7) * 4]), zero;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(zero) : "r"(at) : "memory");
    if (i < n) y[i] = fmaxf(x[i], __uint_as_float(zero));
}
