// How convolutions' kernels find what they read, in generated kernels: four channels of a place together, and
// rounded to TF32 unless a depthwise one reads it.

//@ pack
__device__ __forceinline__ float tf32(float x)
{
    unsigned v;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(x));
    return __uint_as_float(v);
}

// What lies in C order, of so many channels and places.
template <bool ROUND> struct PackMemory {
    const float *__restrict__ from;
    int channels, places;

    __device__ __forceinline__ float operator()(long long image, int channel, int place) const
    {
        const float x = from[(image * channels + channel) * places + place];
        return ROUND ? tf32(x) : x;
    }
};

// Four channels of an output's place become neighbours: `channels` of `places` each, of which a block takes
// 4 * Q by 512 / Q.
template <int Q, typename F>
__device__ __forceinline__ void pack_places(const F &from, float *__restrict__ to, int channels,
                                            int places)
{
    enum { PLACES = 512 / Q };
    __shared__ float tile[4 * Q][PLACES + 1];
    const int quads = (channels + 3) / 4, across = (places + PLACES - 1) / PLACES,
              down = (quads + Q - 1) / Q;
    const int place = blockIdx.x % across * PLACES, quad = blockIdx.x / across % down * Q;
    const long long image = blockIdx.x / across / down;
#pragma unroll
    for (int i = threadIdx.x; i < 2048; i += 256) {
        const int c = i / PLACES, p = i % PLACES;
        tile[c][p] = 4 * quad + c < channels && place + p < places
                         ? from(image, 4 * quad + c, place + p)
                         : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < 512; i += 256) {
        const int q = i % Q, p = i / Q;
        if (quad + q < quads && place + p < places)
            *(float4 *)(to + 4 * ((image * places + place + p) * quads + quad + q)) = make_float4(
                tile[4 * q][p], tile[4 * q + 1][p], tile[4 * q + 2][p], tile[4 * q + 3][p]);
    }
}

// The same, but four channels of neighbouring places lie beside one another.
template <typename F>
__device__ __forceinline__ void pack_quads(const F &from, float *__restrict__ to, int channels,
                                           int places)
{
    const int quads = (channels + 3) / 4, across = (places + 255) / 256,
              place = blockIdx.x % across * 256 + threadIdx.x, quad = blockIdx.x / across % quads;
    const long long image = blockIdx.x / across / quads;
    if (place >= places) return;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = 4 * quad + i < channels ? from(image, 4 * quad + i, place) : 0.f;
    *(float4 *)(to + 4 * ((image * quads + quad) * places + place)) =
        make_float4(v[0], v[1], v[2], v[3]);
}

// Channels of filters become neighbours: those of filter f are `next` apart in memory, and filters `step`.
// BESIDE: four channels of neighbouring filters lie beside one another.
template <bool BESIDE>
__device__ __forceinline__ void pack_filters(const float *__restrict__ from, float *__restrict__ to,
                                             int filters, int channels, int taps, long long step,
                                             long long next)
{
    const int quads = (channels + 3) / 4;
    const long long at = blockIdx.x * 256ll + threadIdx.x;
    if (at >= (long long)filters * taps * quads) return;
    const int quad = (int)(at % quads), tap = (int)(at / quads % taps);
    const float *f = from + at / quads / taps * step + tap;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = 4 * quad + i < channels ? tf32(f[(4 * quad + i) * next]) : 0.f;
    const long long place =
        BESIDE ? ((long long)tap * quads + quad) * filters + at / quads / taps : at;
    *(float4 *)(to + 4 * place) = make_float4(v[0], v[1], v[2], v[3]);
}
