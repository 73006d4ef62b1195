/* quern-light's kernel for arithmetic in registers: 8 chains per thread, 16 steps per round. */
extern "C" __global__ void __launch_bounds__(1024) fma32(float *out, float a, float b, int rounds)
{
    float x[8];
    for (int i = 0; i < 8; i++) x[i] = threadIdx.x + i;
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 8; i++) x[i] = x[i] * a + b;
    float s = 0;
    for (int i = 0; i < 8; i++) s += x[i];
    if (s == 0.12345f) out[threadIdx.x] = s;
}
