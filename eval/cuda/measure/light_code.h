/* Device code of quern-light, as text for NVRTC: each kernel does one thing as fast as the GPU can.
 * A guard that is never true keeps the compiler from removing the work. Macros of the build are
 * expanded in the text. */
#ifndef EVAL_CUDA_MEASURE_LIGHT_CODE_H
#define EVAL_CUDA_MEASURE_LIGHT_CODE_H

#define LIGHT_TEXT_(...) #__VA_ARGS__ "\n"
#define LIGHT_TEXT(...) LIGHT_TEXT_(__VA_ARGS__)

/* Memory. A block processes whole tiles of blockDim * U vectors of 16 bytes; in a grid with a block
 * for each tile, one tile. */
// clang-format off
static const char light_memory_code[] =
    LIGHT_TEXT(typedef unsigned long long Long;
        __device__ inline unsigned mix(unsigned x) {
            x ^= x >> 16;
            x *= 0x7feb352du;
            x ^= x >> 15;
            x *= 0x846ca68bu;
            return x ^ x >> 16;
        }
        __device__ inline void guard(uint4 s, uint4 *out) {
            if (s.x == 0x13572468u && s.y == 0x24681357u && s.z == 1u) *out = s;
        }
        __device__ inline void add(uint4 &s, uint4 v) {
            s.x ^= v.x;
            s.y ^= v.y;
            s.z ^= v.z;
            s.w ^= v.w;
        }
        extern "C" __global__ void fill(uint4 *x, Long n) {
            for (Long i = blockIdx.x * (Long)blockDim.x + threadIdx.x; i < n;
                 i += (Long)gridDim.x * blockDim.x) {
                unsigned v = mix((unsigned)i);
                x[i] = make_uint4(v, mix(v), ~v, v * 3u);
            }
        }
        extern "C" __global__ void nothing() {}
        /* One thread reads words that are far apart, each after the previous one has arrived, and
         * stores the time of each arrival. */
        extern "C" __global__ void watch(const unsigned *x, unsigned words, unsigned jump,
                                         unsigned loads, Long *done) {
            unsigned i = 0;
            for (unsigned k = 0; k < loads; k++) {
                unsigned v = *(const volatile unsigned *)(x + i);
                i = (i + jump + (v == 0x13572468u)) % words;
                Long t;
                asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
                done[k] = t;
            }
        }
        template <int U> __global__ void read_tiles(const uint4 *x, uint4 *out, Long tiles) {
            uint4 s = make_uint4(0, 0, 0, 0);
            for (Long t = blockIdx.x; t < tiles; t += gridDim.x) {
                const uint4 *p = x + t * blockDim.x * U + threadIdx.x;
                uint4 v[U];
                for (int u = 0; u < U; u++) v[u] = __ldcs(p + u * blockDim.x);
                for (int u = 0; u < U; u++) add(s, v[u]);
            }
            guard(s, out);
        }
        template <int U> __global__ void write_tiles(const uint4 *x, uint4 *out, Long tiles) {
            uint4 v = make_uint4(mix(threadIdx.x), mix(blockIdx.x), (unsigned)(Long)x, 7);
            for (Long t = blockIdx.x; t < tiles; t += gridDim.x) {
                uint4 *p = out + t * blockDim.x * U + threadIdx.x;
                for (int u = 0; u < U; u++) __stcs(p + u * blockDim.x, v);
            }
        }
        template <int U> __global__ void copy_tiles(const uint4 *x, uint4 *out, Long tiles) {
            for (Long t = blockIdx.x; t < tiles; t += gridDim.x) {
                Long at = t * blockDim.x * U + threadIdx.x;
                uint4 v[U];
                for (int u = 0; u < U; u++) v[u] = __ldcs(x + at + u * blockDim.x);
                for (int u = 0; u < U; u++) __stcs(out + at + u * blockDim.x, v[u]);
            }
        }
        /* Each block reads `count` tiles. All blocks read the same tiles, each beginning at another
         * one. The loads bypass L1. */
        template <int U> __global__ void l2_tiles(const uint4 *x, uint4 *out, Long tiles, Long count) {
            uint4 s = make_uint4(0, 0, 0, 0);
            Long t = blockIdx.x % tiles;
            for (Long k = 0; k < count; k++) {
                const uint4 *p = x + t * blockDim.x * U + threadIdx.x;
                uint4 v[U];
                for (int u = 0; u < U; u++) v[u] = __ldcg(p + u * blockDim.x);
                for (int u = 0; u < U; u++) add(s, v[u]);
                if (++t == tiles) t = 0;
            }
            guard(s, out);
        });
// clang-format on

enum {
    LIGHT_FILL,
    LIGHT_NOTHING,
    LIGHT_READ4,
    LIGHT_READ8,
    LIGHT_WRITE4,
    LIGHT_WRITE8,
    LIGHT_COPY4,
    LIGHT_COPY8,
    LIGHT_L2_4,
    LIGHT_L2_8,
    LIGHT_WATCH,
    LIGHT_N_MEMORY
};
static const char *const light_memory_names[LIGHT_N_MEMORY] = {
    "fill",           "nothing",        "read_tiles<4>", "read_tiles<8>",
    "write_tiles<4>", "write_tiles<8>", "copy_tiles<4>", "copy_tiles<8>",
    "l2_tiles<4>",    "l2_tiles<8>",    "watch"};

/* Arithmetic in registers: 8 chains per thread, 16 steps per round. */
// clang-format off
static const char light_arithmetic_code[] =
    LIGHT_TEXT(template <typename T> __device__ inline void chains(T *out, T a, T b, int rounds) {
            T x[8];
            for (int i = 0; i < 8; i++) x[i] = (T)(threadIdx.x + i);
            for (int r = 0; r < rounds; r++)
                for (int k = 0; k < 16; k++)
                    for (int i = 0; i < 8; i++) x[i] = x[i] * a + b;
            T s = 0;
            for (int i = 0; i < 8; i++) s += x[i];
            if (s == (T)0.12345) out[threadIdx.x] = s;
        }
        extern "C" __global__ void __launch_bounds__(1024)
        fma32(float *out, float a, float b, int rounds) {
            chains(out, a, b, rounds);
        }
        extern "C" __global__ void __launch_bounds__(1024)
        fma64(double *out, double a, double b, int rounds) { chains(out, a, b, rounds); });
// clang-format on

static const char *const light_arithmetic_names[] = {"fma32", "fma64"};

/* Numbers between 1/2 and 1: two float16, two bfloat16 or one float in 32 bits. */
#define LIGHT_BITS_f16(x) ((x)*2654435761u & 0x03ff03ffu | 0x38003800u)
#define LIGHT_BITS_bf16(x) ((x)*2654435761u & 0x007f007fu | 0x3f003f00u)
#define LIGHT_BITS_tf32(x) ((x)*2654435761u & 0x007fe000u | 0x3f000000u)

/* Tensor cores with mma (compute capability 8.0 and later): 8 accumulators of 16 x 8 in each warp;
 * fp16, bf16 or tf32. */
#define LIGHT_WARP_KERNEL(name, kind, shape)                                                      \
    LIGHT_TEXT(extern "C" __global__ void __launch_bounds__(256) name(float *out, unsigned seed,  \
                                                                      int rounds) {               \
        unsigned a[4], b[2];                                                                      \
        float c[8][4];                                                                            \
        for (int i = 0; i < 4; i++) a[i] = LIGHT_BITS_##kind(seed + 6 * threadIdx.x + i);         \
        for (int i = 0; i < 2; i++) b[i] = LIGHT_BITS_##kind(seed + 6 * threadIdx.x + 4 + i);     \
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
    })

static const char light_warp_code[] =
    LIGHT_WARP_KERNEL(warp_f16, f16, "m16n8k16.row.col.f32.f16.f16.f32")
        LIGHT_WARP_KERNEL(warp_bf16, bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
            LIGHT_WARP_KERNEL(warp_tf32, tf32, "m16n8k8.row.col.f32.tf32.tf32.f32");

static const char *const light_warp_names[] = {"warp_f16", "warp_bf16", "warp_tf32"};

/* Tensor cores with wgmma (9.0, compiled for sm_90a): 64 x 128 sums per warpgroup. Both factors are
 * in shared memory, in swizzled rows of 128 bytes. A round makes 16 products and cycles through the
 * four steps of 32 bytes of a row. */
#define LIGHT_GROUP_SUMS                                                                           \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),            \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),    \
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), \
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), \
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), \
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), \
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), \
        "+f"(d[63])
#define LIGHT_GROUP_NAMES                                                              \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIGHT_GROUP_KERNEL(name, kind, shape, order)                                             \
    LIGHT_TEXT(extern "C" __global__ void __launch_bounds__(128) name(float *out, unsigned seed, \
                                                                      int rounds) {              \
        __shared__ __align__(1024) unsigned tile[6144];                                          \
        for (int i = threadIdx.x; i < 6144; i += 128) tile[i] = LIGHT_BITS_##kind(i + seed);     \
        asm volatile("fence.proxy.async;" ::: "memory");                                         \
        __syncthreads();                                                                         \
        unsigned at = (unsigned)__cvta_generic_to_shared(tile);                                  \
        unsigned long long common = 1ull << 16 | 64ull << 32 | 1ull << 62;                       \
        unsigned long long a = common | (at & 0x3ffff) >> 4,                                     \
                           b = common | ((at + 8192) & 0x3ffff) >> 4;                            \
        float d[64];                                                                             \
        for (int i = 0; i < 64; i++) d[i] = 0;                                                   \
        for (int r = 0; r < rounds; r++) {                                                       \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                              \
            for (int k = 0; k < 16; k++)                                                         \
                asm volatile(                                                                    \
                    "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned." shape   \
                    " {" LIGHT_GROUP_NAMES "}, %64, %65, p, 1, 1" order "; }"                    \
                    : LIGHT_GROUP_SUMS                                                           \
                    : "l"(a + 2 * (k & 3)), "l"(b + 2 * (k & 3)));                               \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                       \
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                       \
        }                                                                                        \
        float s = 0;                                                                             \
        for (int i = 0; i < 64; i++) s += d[i];                                                  \
        if (s == 0.12345f) out[threadIdx.x] = s;                                                 \
    })

static const char light_group_code[] =
    LIGHT_GROUP_KERNEL(group_f16, f16, "m64n128k16.f32.f16.f16", ", 0, 0")
        LIGHT_GROUP_KERNEL(group_bf16, bf16, "m64n128k16.f32.bf16.bf16", ", 0, 0")
            LIGHT_GROUP_KERNEL(group_tf32, tf32, "m64n128k8.f32.tf32.tf32", "");
static const char *const light_group_names[] = {"group_f16", "group_bf16", "group_tf32"};

#endif
