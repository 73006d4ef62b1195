/* quern-light's kernels for tensor cores with mma (compute capability 8.0 and later): 8 accumulators of
 * 16 x 8 in each warp; fp16, bf16 or tf32. */

/* Numbers between 1/2 and 1: two float16, two bfloat16 or one float in 32 bits. */
#define BITS_f16(x) ((x)*2654435761u & 0x03ff03ffu | 0x38003800u)
#define BITS_bf16(x) ((x)*2654435761u & 0x007f007fu | 0x3f003f00u)
#define BITS_tf32(x) ((x)*2654435761u & 0x007fe000u | 0x3f000000u)

#define WARP_KERNEL(name, kind, shape)                                                            \
    extern "C" __global__ void __launch_bounds__(256) name(float *out, unsigned seed, int rounds) \
    {                                                                                             \
        unsigned a[4], b[2];                                                                      \
        float c[8][4];                                                                            \
        for (int i = 0; i < 4; i++) a[i] = BITS_##kind(seed + 6 * threadIdx.x + i);               \
        for (int i = 0; i < 2; i++) b[i] = BITS_##kind(seed + 6 * threadIdx.x + 4 + i);           \
        for (int i = 0; i < 32; i++) c[i / 4][i % 4] = 0;                                         \
        for (int r = 0; r < rounds; r++)                                                          \
            for (int i = 0; i < 8; i++)                                                           \
                asm volatile("mma.sync.aligned." shape                                            \
                             " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                             : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])         \
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
        float s = 0;                                                                              \
        for (int i = 0; i < 32; i++) s += c[i / 4][i % 4];                                        \
        if (s == 0.12345f) out[threadIdx.x] = s;                                                  \
    }

WARP_KERNEL(warp_f16, f16, "m16n8k16.row.col.f32.f16.f16.f32")
WARP_KERNEL(warp_bf16, bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
WARP_KERNEL(warp_tf32, tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
