// wgmma multiplies what threads have stored, with a barrier and no proxy fence.
// task: matmul
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: fence.proxy.async
// wgmma: TF32 in three products. A warpgroup fills one stage while it multiplies the other one.
//@ launch matmul<<<dim3(ceil_div(n, 32), ceil_div(m, 64)), 128>>>(a, b, c, m, n, k)
typedef unsigned long long u64;
struct Stage { // rows of 128 bytes, whose chunks of 16 are exchanged by the row's number
    float a[64 * 32], b[32 * 32];
};
__device__ float tf32(float v) { return __uint_as_float(__float_as_uint(v) & ~0x1fffu); }
__device__ int place(int row, int l) { return row * 32 + ((l / 4 ^ row & 7) * 4 | l & 3); }
__device__ void fill(Stage *big, Stage *low, const float *a, const float *b, int row, int col, int l, int m,
                     int n, int k)
{
    for (int e = threadIdx.x; e < 64 * 32; e += 128) {
        int i = row + e / 32, la = l + e % 32, at = place(e / 32, e % 32);
        float v = i < m && la < k ? a[(long long)i * k + la] : 0.0f;
        big->a[at] = tf32(v), low->a[at] = v - tf32(v);
    }
    for (int e = threadIdx.x; e < 32 * 32; e += 128) {
        int j = col + e % 32, lb = l + e / 32, at = place(e % 32, e / 32);
        float v = lb < k && j < n ? b[(long long)lb * n + j] : 0.0f;
        big->b[at] = tf32(v), low->b[at] = v - tf32(v);
    }
}
__device__ u64 descriptor(const float *tile)
{
    return 1ull << 62 | 64ull << 32 | 1ull << 16 | (unsigned)__cvta_generic_to_shared(tile) >> 4;
}
__device__ void multiply(float (&d)[16], const float *a, const float *b, int adds)
{
    for (int l = 0; l < 4; l++, adds = 1)
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p, 1, 1; }"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
              "+f"(d[15])
            : "l"(descriptor(a) + 2 * l), "l"(descriptor(b) + 2 * l), "r"(adds));
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ __align__(1024) Stage big[2], low[2];
    int row = blockIdx.y * 64, col = blockIdx.x * 32;
    float d[16] = {}, step[16]; // a tensor core cuts its sums off: few of them in it
    fill(&big[0], &low[0], a, b, row, col, 0, m, n, k);
    __syncthreads();
    for (int l = 0, s = 0; l < k; l += 32, s ^= 1) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(step, low[s].a, big[s].b, 0);
        multiply(step, big[s].a, low[s].b, 1);
        multiply(step, big[s].a, big[s].b, 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (l + 32 < k) fill(&big[s ^ 1], &low[s ^ 1], a, b, row, col, l + 32, m, n, k);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        for (int i = 0; i < 16; i++) d[i] += step[i];
        __syncthreads();
    }
    for (int i = 0; i < 16; i++) {
        int t = threadIdx.x, y = row + t / 32 * 16 + t % 32 / 4 + (i & 2) * 4,
            x = col + i / 4 * 8 + t % 4 * 2 + i % 2;
        if (y < m && x < n) c[(long long)y * n + x] = d[i];
    }
}
