/* quern-light's kernels for arithmetic in registers: 8 chains per thread, 16 steps per round. */
template <typename T> __device__ inline void chains(T *out, T a, T b, int rounds)
{
    T x[8];
    for (int i = 0; i < 8; i++) x[i] = (T)(threadIdx.x + i);
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 8; i++) x[i] = x[i] * a + b;
    T s = 0;
    for (int i = 0; i < 8; i++) s += x[i];
    if (s == (T)0.12345) out[threadIdx.x] = s;
}
extern "C" __global__ void __launch_bounds__(1024) fma32(float *out, float a, float b, int rounds)
{
    chains(out, a, b, rounds);
}
extern "C" __global__ void __launch_bounds__(1024)
    fma64(double *out, double a, double b, int rounds)
{
    chains(out, a, b, rounds);
}
