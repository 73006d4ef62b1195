// Depthwise convolutions, in generated kernels: four neighbouring channels of some neighbouring outputs a
// thread, in float32.

//@ depthwise
// Of two dimensions.
struct Depthwise {
    int in[2], out[2], padding[2], channels;
    long long images;
};

// A block has Q times four channels and 256 / Q times R outputs of a line each. Their filters lie in shared
// memory, by taps. What few taps read is on its way while the block waits for them; beyond the margins the
// elements next to them are read.
template <int KH, int KW, int STRIDE, int DOWN, int DILATION, int LOW, int Q, int R, typename E>
__device__ __forceinline__ void depthwise(const Depthwise &v, const float *__restrict__ filters,
                                          const float *__restrict__ input, E each)
{
    enum { TAPS = KH * KW, SPAN = (R - 1) * STRIDE + (KW - 1) * DILATION + 1, WIDE = 4 * Q };
    enum { OWN = (TAPS * WIDE + 255) / 256, ALL = KH * SPAN <= 20 };
    __shared__ float4 taps[TAPS][Q];
    const int quads = (v.channels + 3) / 4, across = (quads + Q - 1) / Q,
              first = (int)(blockIdx.x % across) * Q, quad = first + threadIdx.x % Q,
              groups = (v.out[1] + R - 1) / R;
    const long long lines = (long long)v.out[0] * groups,
                    item = blockIdx.x / across * (256ll / Q) + threadIdx.x / Q,
                    image = min(item / lines, v.images - 1);
    const int line = (int)(item % lines) / groups, left = (int)(item % lines) % groups * R;
    const bool there = quad < quads && item < lines * v.images;
    float own[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int n = threadIdx.x + 256 * i;
        const bool is = n < TAPS * WIDE && 4 * first + n / TAPS < v.channels;
        own[i] = is ? filters[4ll * first * TAPS + n] : 0.f;
    }
    const float4 *from = (const float4 *)input + image * v.in[0] * v.in[1] * quads +
                         min(quad, quads - 1);
    const int right = left * STRIDE - v.padding[1], top = line * DOWN - v.padding[0];
    const bool inner = right >= 0 && right + SPAN <= v.in[1] && top >= 0 &&
                       top + (KH - 1) * LOW < v.in[0];
    const auto read = [&](int k, float4(&x)[SPAN]) {
        const float4 *row = from + (long long)min(max(top + k * LOW, 0), v.in[0] - 1) * v.in[1] * quads;
#pragma unroll
        for (int s = 0; s < SPAN; s++)
            x[s] = row[(long long)min(max(right + s, 0), v.in[1] - 1) * quads];
    };
    float4 x[KH][SPAN], sums[R];
#pragma unroll
    for (int k = 0; k < KH; k++)
        if (ALL) read(k, x[k]);
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int n = threadIdx.x + 256 * i;
        if (n < TAPS * WIDE) ((float *)taps[n % TAPS])[n / TAPS] = own[i];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++) sums[r] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int k = 0; k < KH; k++) {
        if (!ALL) read(k, x[k]);
        const bool above = (unsigned)(top + k * LOW) >= (unsigned)v.in[0];
#pragma unroll
        for (int s = 0; s < SPAN && !inner; s++)
            if (above || (unsigned)(right + s) >= (unsigned)v.in[1])
                x[k][s] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
        for (int t = 0; t < KW; t++) {
            const float4 w = taps[k * KW + t][threadIdx.x % Q];
#pragma unroll
            for (int r = 0; r < R; r++) {
                const float4 a = x[k][r * STRIDE + t * DILATION];
                sums[r].x += a.x * w.x, sums[r].y += a.y * w.y;
                sums[r].z += a.z * w.z, sums[r].w += a.w * w.w;
            }
        }
    }
    if (!there) return;
#pragma unroll
    for (int r = 0; r < R; r++)
        if (left + r < v.out[1]) each(image, 4ll * quad, line * v.out[1] + left + r, sums[r]);
}
