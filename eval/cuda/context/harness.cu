/* The harness's device code: the check of guard zones, the comparison with expected contents,
 * digests, and the flush before a timing. No result depends on the order in which blocks run. */
typedef unsigned long long u64;
typedef unsigned int u32;

struct Zone {
    u64 start, end; /* addresses; end is a multiple of 16 */
};

struct ZoneBad {
    u64 lowest, highest; /* least address of a changed byte; complement of the greatest */
};

/* Update the bounds with the bytes of one aligned vector of 16 that are not poison. */
__device__ void note_bad(u64 at, u64 start, const u32 *words, u64 *lowest, u64 *highest)
{
    for (int i = 0; i < 16; i++) {
        u32 byte = words[i / 4] >> (8 * (i % 4)) & 255u;
        u64 here = at + (u64)i;
        if (byte == 255u || here < start) continue;
        if (here < *lowest) *lowest = here;
        if (~here < *highest) *highest = ~here;
    }
}

/* blockIdx.y is the zone; the blocks with the same y share it. */
extern "C" __global__ void harness_zones(const Zone *zones, ZoneBad *bad)
{
    Zone z = zones[blockIdx.y];
    u64 lowest = ~0ull;
    u64 highest = ~0ull;
    u64 first = z.start / 16;
    u64 count = z.end / 16 - first;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (u64)gridDim.x * blockDim.x) {
        uint4 v = *(const uint4 *)((first + i) * 16);
        if ((v.x & v.y & v.z & v.w) == ~0u) continue;
        u32 words[4] = {v.x, v.y, v.z, v.w};
        note_bad((first + i) * 16, z.start, words, &lowest, &highest);
    }
    if (lowest == ~0ull) return;
    atomicMin(&bad[blockIdx.y].lowest, lowest);
    atomicMin(&bad[blockIdx.y].highest, highest);
}

struct Difference {
    u64 wrong, unwritten;       /* counts */
    u64 first, first_unwritten; /* least indices; all ones: none */
    u64 worst;                  /* high: complement of the excess as float bits; low: the index */
};

__device__ double half_value(u32 h)
{
    int exponent = (int)(h >> 10 & 31u);
    int fraction = (int)(h & 1023u);
    double v;
    if (exponent == 31)
        v = fraction ? __longlong_as_double(0x7ff8000000000000ll)
                     : __longlong_as_double(0x7ff0000000000000ll);
    else if (exponent)
        v = (1024 + fraction) * __longlong_as_double((u64)(1023 + exponent - 25) << 52);
    else
        v = fraction * __longlong_as_double((u64)(1023 - 24) << 52);
    return h & 0x8000u ? -v : v;
}

/* The bits of an element as double. *poison: all its bytes are 0xff. dtype: 0 float32, 1 float16,
 * 2 bfloat16, 3 int32. */
__device__ double value_of(u32 bits, int dtype, bool *poison)
{
    if (dtype == 0 || dtype == 3) {
        *poison = bits == ~0u && dtype == 0;
        return dtype == 0 ? (double)__uint_as_float(bits) : (double)(int)bits;
    }
    *poison = bits == 0xffffu;
    return dtype == 1 ? half_value(bits) : (double)__uint_as_float(bits << 16);
}

__device__ inline u32 bits_of(const void *p, int dtype, u64 i)
{
    return dtype == 0 || dtype == 3 ? ((const u32 *)p)[i] : ((const unsigned short *)p)[i];
}

/* The bits of elements 4 * i to 4 * i + 3, by one load. */
__device__ inline uint4 four_of(const void *p, int dtype, u64 i)
{
    if (dtype == 0 || dtype == 3) return ((const uint4 *)p)[i];
    uint2 v = ((const uint2 *)p)[i];
    return make_uint4(v.x & 0xffffu, v.x >> 16, v.y & 0xffffu, v.y >> 16);
}

/* The least magnitude that rounds to infinity in the type: 0x1.ffffffp127, 65520, 0x1.ffp127. */
__device__ double overflow(int dtype)
{
    return dtype == 1   ? 65520.0
           : dtype == 2 ? __longlong_as_double(0x47eff00000000000ll)
           : dtype == 0 ? __longlong_as_double(0x47efffffff000000ll)
                        : __longlong_as_double(0x7ff0000000000000ll);
}

/* Infinity stands for an expected value that is too large for the type, or that is within its
 * tolerance of such a value. */
__device__ bool close_enough(double got, double want, double limit, int dtype)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isnan(got)) return got == want;
    if (isinf(got))
        return (got > 0) == (want > 0) && __dadd_rn(fabs(want), limit) >= overflow(dtype);
    return fabs(got - want) <= limit;
}

/* The difference in units of the tolerance, as float bits, which order as the numbers do. */
__device__ u32 excess(double got, double want, double limit)
{
    double d = fabs(got - want);
    if (isnan(d) || isinf(d)) return 0x7f800000u;
    double by = d / (limit > 0 ? limit : __longlong_as_double((u64)(1023 - 149) << 52));
    float f = __double2float_rz(by);
    return isinf(f) ? 0x7f7fffffu : __float_as_uint(f);
}

__device__ u64 warp_sum(u64 v)
{
    for (int i = 16; i; i /= 2) v += __shfl_xor_sync(~0u, v, i);
    return v;
}

__device__ u64 warp_min(u64 v)
{
    for (int i = 16; i; i /= 2) {
        u64 other = __shfl_xor_sync(~0u, v, i);
        if (other < v) v = other;
    }
    return v;
}

/* Where element i lies of what has `period` elements and is read from element `from` on, cyclically, and
 * how far the next one of a thread is. A division for each element would take longer than the reads. */
struct Turn {
    u64 at, step, period;
};

__device__ inline Turn turn_of(u64 i, u64 from, u64 period, u64 stride)
{
    Turn t = {0, 0, period};
    if (period) t.at = (i + from) % period, t.step = stride % period;
    return t;
}

__device__ inline void advance(Turn *t)
{
    t->at += t->step;
    if (t->at >= t->period) t->at -= t->period;
}

/* The findings of one thread. worst: the complement of a key. The least key is the worst element, and among
 * equal keys the first one. */
struct Found {
    u64 wrong, unwritten, first, first_unwritten, worst;
};

__device__ void look_at(u32 bits, double want, double limit, int dtype, u64 i, Found *f)
{
    bool poison;
    double got = value_of(bits, dtype, &poison);
    if (poison) {
        f->unwritten++;
        if (i < f->first_unwritten) f->first_unwritten = i;
    }
    if (close_enough(got, want, limit, dtype)) return;
    f->wrong++;
    if (i < f->first) f->first = i;
    u64 key = (u64)(~excess(got, want, limit)) << 32 | i;
    if (key < f->worst) f->worst = key;
}

__device__ inline double limit_of(double want, double atol, double rtol)
{
    return __dadd_rn(atol, __dmul_rn(rtol, fabs(want)));
}

/* Numbers that need no second look. */
__device__ inline bool near(u32 bits, double want, double atol, double rtol, int dtype)
{
    bool poison;
    double limit = limit_of(want, atol, rtol);
    return fabs(value_of(bits, dtype, &poison) - want) <= limit && !isinf(limit);
}

/* Four neighbours a thread, whose loads do not wait for one another: of the n elements those that can be
 * taken so. Returns how many. */
__device__ u64 compare_fours(const void *got, const double *want, u64 from, u64 period, int dtype,
                             u64 n, double atol, double rtol, Found *f)
{
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 threads = (u64)gridDim.x * blockDim.x;
    u64 fours = (from || period < n) && (from | period) % 4 ? 0 : n / 4;
    Turn turn = turn_of(4 * thread, from, period, 4 * threads);
    for (u64 i = thread; i < fours; i += threads, advance(&turn)) {
        uint4 x = four_of(got, dtype, i);
        double2 a = *(const double2 *)(want + turn.at);
        double2 b = *(const double2 *)(want + turn.at + 2);
        if (near(x.x, a.x, atol, rtol, dtype) && near(x.y, a.y, atol, rtol, dtype) &&
            near(x.z, b.x, atol, rtol, dtype) && near(x.w, b.y, atol, rtol, dtype))
            continue;
        look_at(x.x, a.x, limit_of(a.x, atol, rtol), dtype, 4 * i, f);
        look_at(x.y, a.y, limit_of(a.y, atol, rtol), dtype, 4 * i + 1, f);
        look_at(x.z, b.x, limit_of(b.x, atol, rtol), dtype, 4 * i + 2, f);
        look_at(x.w, b.y, limit_of(b.y, atol, rtol), dtype, 4 * i + 3, f);
    }
    return 4 * fours;
}

/* Compare n elements with the `period` ones of want, read from element `from` on, cyclically. */
extern "C" __global__ void harness_compare(const void *got, const double *want, u64 from,
                                           u64 period, int dtype, u64 n, double atol, double rtol,
                                           Difference *out)
{
    Found f = {0, 0, ~0ull, ~0ull, ~0ull};
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 i = compare_fours(got, want, from, period, dtype, n, atol, rtol, &f) +
            (u64)blockIdx.x * blockDim.x + threadIdx.x;
    Turn turn = turn_of(i, from, period, stride);
    for (; i < n; i += stride, advance(&turn)) {
        double y = want[turn.at];
        look_at(bits_of(got, dtype, i), y, limit_of(y, atol, rtol), dtype, i, &f);
    }
    if (!__any_sync(~0u, f.wrong || f.unwritten)) return;
    f.wrong = warp_sum(f.wrong);
    f.unwritten = warp_sum(f.unwritten);
    f.first = warp_min(f.first);
    f.first_unwritten = warp_min(f.first_unwritten);
    f.worst = warp_min(f.worst);
    if (threadIdx.x % 32) return;
    atomicAdd(&out->wrong, f.wrong);
    atomicAdd(&out->unwritten, f.unwritten);
    atomicMin(&out->first, f.first);
    atomicMin(&out->first_unwritten, f.first_unwritten);
    atomicMin(&out->worst, f.worst);
}

/* The least offset at which two byte ranges differ; both start at a multiple of 16. b has `period` bytes
 * and is read from byte `from` on, cyclically. */
extern "C" __global__ void harness_same(const unsigned char *a, const unsigned char *b, u64 from,
                                        u64 period, u64 bytes, u64 *first)
{
    u64 least = ~0ull;
    u64 words = bytes / 16;
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 stride = (u64)gridDim.x * blockDim.x;
    Turn turn = turn_of(thread * 16, from, period, stride * 16);
    for (u64 i = thread; i < words; i += stride, advance(&turn)) {
        uint4 x = ((const uint4 *)a)[i];
        u64 j = turn.at;
        uint4 y = *(const uint4 *)(b + j);
        if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) continue;
        for (u64 k = 0; k < 16; k++)
            if (a[i * 16 + k] != b[j + k] && i * 16 + k < least) least = i * 16 + k;
    }
    u64 last = words * 16 + thread;
    if (last < bytes && a[last] != b[(last + from) % period] && last < least) least = last;
    least = warp_min(least);
    if (threadIdx.x % 32 == 0 && least != ~0ull) atomicMin(first, least);
}

__device__ u64 stir(u64 x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 29;
    x *= 0xe7037ed1a0b428dbull;
    return x ^ x >> 32;
}

/* Two sums over all words of 8 bytes, each of a function of the word and its index. */
extern "C" __global__ void harness_digest(const unsigned char *p, u64 bytes, u64 *out)
{
    u64 a = 0;
    u64 b = 0;
    u64 words = bytes / 8;
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 i = thread; i <= words; i += (u64)gridDim.x * blockDim.x) {
        u64 v = 0;
        if (i < words)
            v = ((const u64 *)p)[i];
        else
            for (u64 k = words * 8; k < bytes; k++) v |= (u64)p[k] << (8 * (k - words * 8));
        a += stir(v + stir(2 * i + 1));
        b += stir(stir(v ^ 0x9e3779b97f4a7c15ull) + stir(2 * i + 2));
    }
    a = warp_sum(a);
    b = warp_sum(b);
    if (threadIdx.x % 32) return;
    atomicAdd(&out[0], a);
    atomicAdd(&out[1], b);
}

__device__ inline u64 nanoseconds()
{
    u64 t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

__device__ inline void clear(uint4 *p, uint4 seen)
{
    if (seen.x | seen.y | seen.z | seen.w) *p = make_uint4(0, 0, 0, 0);
}

/* Remove what earlier launches left on the chip. Shared memory is overwritten. The L2 is filled
 * with other lines by reading them, so that no dirty line is written back while the next kernel is
 * timed. Words of p that are not zero are zeroed, so that a candidate cannot pass data to its next
 * run there. One block per SM. It reads all words in each of its passes, of one launch: a launch a pass would
 * take the places of the next launches in the driver's queue. */
__device__ inline void flush_once(uint4 *p, u64 words)
{
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * stride < words; i += 4 * stride) {
        uint4 a = __ldcg(&p[i]);
        uint4 b = __ldcg(&p[i + stride]);
        uint4 c = __ldcg(&p[i + 2 * stride]);
        uint4 d = __ldcg(&p[i + 3 * stride]);
        clear(&p[i], a);
        clear(&p[i + stride], b);
        clear(&p[i + 2 * stride], c);
        clear(&p[i + 3 * stride], d);
    }
    for (; i < words; i += stride) clear(&p[i], __ldcg(&p[i]));
}

extern "C" __global__ void harness_flush(uint4 *p, u64 words, u32 shared_words, u32 passes)
{
    extern __shared__ u32 shared[];
    for (u32 i = threadIdx.x; i < shared_words; i += blockDim.x) ((volatile u32 *)shared)[i] = ~0u;
    for (u32 i = 0; i < passes; i++) flush_once(p, words);
}

/* Wait until the clock is at `phase` of the period. `turns` bounds the reads of the clock, in case
 * it stands still. One thread. */
extern "C" __global__ void harness_wait(u64 period, u64 phase, u32 turns)
{
    u64 now = nanoseconds();
    u64 until = now + (phase + period - now % period) % period;
    for (u32 i = 0; i < turns && now < until; i++) now = nanoseconds();
}

extern "C" __global__ void harness_nothing()
{
}

/* ---- inputs, bit for bit as tasks/draw_inputs.c draws them ---- */

/* The numbers of the streams lie HEAD u64 behind its beginning, 4 a stream of 65536 elements. */
struct Numbers {
    double low, wide, mean, std, scale;
    u64 n, mixed, kind; /* HARNESS_EVEN to HARNESS_SPECIAL, and Task.special from bit 8 on */
};

static const int HEAD = 8, NEEDLES = 1, POSITIVE_NEEDLES = 2;
static const u64 SPECIAL_LARGE = 1, SPECIAL_INF = 2, SPECIAL_NAN = 4;

__device__ inline u64 number(u64 counter)
{
    u64 x = counter * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

__device__ inline u32 four_uniforms(u64 x)
{
    return (u32)(x & 0xffff) + (u32)(x >> 16 & 0xffff) + (u32)(x >> 32 & 0xffff) + (u32)(x >> 48);
}

__device__ inline double mixed_factor(u64 bits)
{
    return bits == 0 ? 16.0 : bits == 1 ? 1.0 / 4096.0 : bits == 2 ? 0.0 : 1.0;
}

/* The first number of each stream. */
extern "C" __global__ void harness_draw_by_index(const Numbers *given, float *out)
{
    const Numbers m = *given;
    const u64 *state = (const u64 *)given + HEAD;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < m.n;
         i += (u64)gridDim.x * blockDim.x) {
        u64 at = state[4 * (i >> 16)] + 4 * (i & 0xffff);
        u32 sum = four_uniforms(number(at)) + four_uniforms(number(at + 1)) +
                  four_uniforms(number(at + 2));
        u64 last = number(at + 3);
        double x = __dadd_rn(__dmul_rn(__dadd_rn((double)sum, 6.0), 1.0 / 65536.0), -6.0);
        double low = __dmul_rn((double)(int)(last & 0xffffff), 1.0 / 1099511627776.0);
        x = __dadd_rn(x, low);
        if (m.mixed) x = __dmul_rn(x, mixed_factor(last >> 60));
        out[i] = __double2float_rn(__dmul_rn(__dadd_rn(m.mean, __dmul_rn(m.std, x)), m.scale));
    }
}

__device__ inline u64 next(u64 *s)
{
    u64 x = s[1] * 5, out = (x << 7 | x >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return out;
}

__device__ inline double unit_of(u64 bits)
{
    return __dmul_rn((double)(bits >> 11), 1.0 / 9007199254740992.0);
}

__device__ inline double normal(u64 *s)
{
    u32 sum = four_uniforms(next(s));
    sum += four_uniforms(next(s));
    sum += four_uniforms(next(s));
    return __dadd_rn(__dmul_rn(__dadd_rn((double)sum, 6.0), 1.0 / 65536.0), -6.0);
}

__device__ inline double needle(u64 *s, const Numbers &m, int positive)
{
    u64 bits = next(s);
    double large = __dadd_rn(4.0, __dmul_rn(4.0, unit_of(next(s))));
    if (!(bits >> 57)) return positive || bits & 1 ? large : -large;
    return positive ? __dadd_rn(m.low, __dmul_rn(m.wide, unit_of(next(s)))) : normal(s) * 0.0625;
}

/* The bits of one of the extreme numbers. */
__device__ inline u32 special(u64 *s, u64 with)
{
    u64 bits = next(s), n = 6, at;
    if (bits >> 63) return __float_as_uint(__double2float_rn(normal(s)));
    n += (with & SPECIAL_LARGE ? 2 : 0) + (with & SPECIAL_INF ? 1 : 0) +
         (with & SPECIAL_NAN ? 1 : 0);
    at = (bits >> 8) % n;
    u32 value = at == 0   ? 0u
                : at == 1 ? 1u
                : at == 2 ? 0x400000u
                : at == 3 ? 0x800000u
                : at == 4 ? 0xd800000u
                          : 0x3f800000u;
    if (at >= 6) {
        u64 of = at - 6 + (with & SPECIAL_LARGE ? 0 : 2);
        if (of >= 2 && !(with & SPECIAL_INF)) of++;
        value = of == 0 ? 0x7f7fffffu : of == 1 ? 0x7effffffu : of == 2 ? 0x7f800000u : 0x7fc00000u;
    }
    return bits & 1 ? value : value ^ 0x80000000u;
}

__device__ inline float one_of(u64 *s, const Numbers &m)
{
    u64 kind = m.kind & 255;
    if (kind == NEEDLES || kind == POSITIVE_NEEDLES)
        return __double2float_rn(needle(s, m, kind == POSITIVE_NEEDLES));
    if (kind) return __uint_as_float(special(s, m.kind >> 8));
    double x = __dadd_rn(m.low, __dmul_rn(m.wide, unit_of(next(s))));
    return __double2float_rn(__dmul_rn(x, m.scale));
}

/* A thread has a stream of 65536 elements; its warp stores 32 of each stream at a time. Blocks of 32. */
extern "C" __global__ void harness_draw(const Numbers *given, float *out)
{
    __shared__ float tile[32][33];
    const Numbers m = *given;
    const u64 *state = (const u64 *)given + HEAD;
    const u64 streams = (m.n + 65535) >> 16;
    for (u64 first = blockIdx.x * 32ull; first < streams; first += gridDim.x * 32ull) {
        u64 s[4], own = first + threadIdx.x < streams ? first + threadIdx.x : first;
        for (int k = 0; k < 4; k++) s[k] = state[4 * own + k];
        for (u64 at = 0; at < 65536; at += 32) {
            for (int k = 0; k < 32; k++) tile[threadIdx.x][k] = one_of(s, m);
            __syncwarp();
            for (int k = 0; k < 32 && first + k < streams; k++) {
                u64 i = ((first + k) << 16) + at + threadIdx.x;
                if (i < m.n) out[i] = tile[k][threadIdx.x];
            }
            __syncwarp();
        }
    }
}
