// Depthwise convolutions, in generated kernels: four neighbouring channels of some neighbouring outputs a
// thread, in float32.

//@ depthwise
// Of two dimensions.
struct Depthwise {
    int in[2], out[2], padding[2], channels;
};

// What the taps of a line read, from place `right` on; beyond the margins the elements next to them.
template <int SPAN>
__device__ __forceinline__ void depthwise_read(const Depthwise &v, const float4 *from, int y,
                                               int right, float4 (&x)[SPAN])
{
    const int quads = (v.channels + 3) / 4;
    const float4 *row = from + (long long)min(max(y, 0), v.in[0] - 1) * v.in[1] * quads;
#pragma unroll
    for (int s = 0; s < SPAN; s++)
        x[s] = row[(long long)min(max(right + s, 0), v.in[1] - 1) * quads];
}

// Zeros in place of what lies beyond the margins.
template <int SPAN>
__device__ __forceinline__ void depthwise_cut(const Depthwise &v, int y, int right,
                                              float4 (&x)[SPAN])
{
#pragma unroll
    for (int s = 0; s < SPAN; s++)
        if ((unsigned)y >= (unsigned)v.in[0] || (unsigned)(right + s) >= (unsigned)v.in[1])
            x[s] = make_float4(0.f, 0.f, 0.f, 0.f);
}

// A block has Q times four channels of a tile of four lines and 64 / Q times R outputs. Their filters lie in
// shared memory, by taps. What few taps read is on its way while the block waits for them.
template <int KH, int KW, int STRIDE, int DOWN, int DILATION, int LOW, int Q, int R, typename E>
__device__ __forceinline__ void depthwise(const Depthwise &v, const float *__restrict__ filters,
                                          const float *__restrict__ input, E each)
{
    enum { TAPS = KH * KW, SPAN = (R - 1) * STRIDE + (KW - 1) * DILATION + 1, WIDE = 4 * Q };
    enum { OWN = (TAPS * WIDE + 255) / 256, ALL = KH * SPAN <= 20, ACROSS = 64 / Q };
    __shared__ float4 taps[TAPS][Q + 1]; // taps of a channel share no banks
    const int quads = (v.channels + 3) / 4, pieces = (quads + Q - 1) / Q,
              first = (int)(blockIdx.x % pieces) * Q, quad = first + threadIdx.x % Q,
              across = (v.out[1] + ACROSS * R - 1) / (ACROSS * R), down = (v.out[0] + 3) / 4,
              item = threadIdx.x / Q;
    const long long tile = blockIdx.x / pieces, image = tile / across / down;
    const int line = (int)(tile / across % down) * 4 + item / ACROSS,
              left = ((int)(tile % across) * ACROSS + item % ACROSS) * R,
              right = left * STRIDE - v.padding[1], top = line * DOWN - v.padding[0];
    float own[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int n = threadIdx.x + 256 * i;
        const bool is = n < TAPS * WIDE && 4 * first + n / TAPS < v.channels;
        own[i] = is ? filters[4ll * first * TAPS + n] : 0.f;
    }
    const float4 *from =
        (const float4 *)input + image * v.in[0] * v.in[1] * quads + min(quad, quads - 1);
    const bool inner =
        right >= 0 && right + SPAN <= v.in[1] && top >= 0 && top + (KH - 1) * LOW < v.in[0];
    float4 sums[R];
#pragma unroll
    for (int r = 0; r < R; r++) sums[r] = make_float4(0.f, 0.f, 0.f, 0.f);
    const auto add = [&](int k, float4(&x)[SPAN]) {
        if (!inner) depthwise_cut(v, top + k * LOW, right, x);
#pragma unroll
        for (int t = 0; t < KW; t++) {
            const float4 w = taps[k * KW + t][threadIdx.x % Q];
#pragma unroll
            for (int r = 0; r < R; r++) {
                const float4 a = x[r * STRIDE + t * DILATION];
                sums[r].x += a.x * w.x, sums[r].y += a.y * w.y;
                sums[r].z += a.z * w.z, sums[r].w += a.w * w.w;
            }
        }
    };
    const auto share = [&]() {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int n = threadIdx.x + 256 * i;
            if (n < TAPS * WIDE) ((float *)taps[n % TAPS])[n / TAPS] = own[i];
        }
        __syncthreads();
    };
    if (ALL) {
        float4 x[KH][SPAN];
#pragma unroll
        for (int k = 0; k < KH; k++) depthwise_read(v, from, top + k * LOW, right, x[k]);
        share();
#pragma unroll
        for (int k = 0; k < KH; k++) add(k, x[k]);
    } else {
        share();
#pragma unroll 1
        for (int k = 0; k < KH; k++) {
            float4 x[SPAN];
            depthwise_read(v, from, top + k * LOW, right, x);
            add(k, x);
        }
    }
    if (quad >= quads || line >= v.out[0]) return;
#pragma unroll
    for (int r = 0; r < R; r++)
        if (left + r < v.out[1]) each(image, 4ll * quad, line * v.out[1] + left + r, sums[r]);
}
