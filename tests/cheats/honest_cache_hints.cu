// Streaming hints: loads that leave no line in the L1, stores that are evicted first, and a policy for the L2.
// task: gelu
// expect: ok
//@ launch gelu<<<ceil_div(n, 1024), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    for (int k = 0; k < 4; k++) {
        int i = blockIdx.x * 1024 + k * 256 + threadIdx.x;
        if (i >= n) return;
        float v, g;
        if (k % 2) asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
        else asm("ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(policy));
        g = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        if (k == 0) asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" : : "l"(y + i), "f"(g), "l"(policy) : "memory");
        else if (k == 1) __stcs(y + i, g);
        else if (k == 2) __stwt(y + i, g);
        else __stcg(y + i, g);
    }
}
