/* Draw one token from each row of logits by the law of model/core/decoder.h: the inverse of the
 * distribution function, in the order of ids, at a given u. The token of a row therefore depends
 * only on its logits and its u. The vocabulary is divided into chunks of one block each, whose
 * maxima and sums are combined in order. */
#include "decode.cuh"

constexpr int CHUNK = 4096, THREADS = 256, OWN = CHUNK / THREADS;

struct Law {
    /* Row r begins ld numbers after row r - 1. ld 0: all rows draw from the same logits. */
    const float *logits;
    size_t ld;
    const unsigned *banned; /* one bit per id */
    int vocab;
    float inverse;     /* of the temperature; 1 if greedy */
    int greedy, top_k; /* top_k 0: off */
    float top_p, min_p;
    unsigned *cut; /* [rows][2], of top_k and top_p: see kept() */
};

/* The sums of a chunk: maximum, and sum of exp((z - maximum) inverse), over all ids and over the
 * allowed ids. */
struct ChunkSums {
    float top, sum, top_kept, sum_kept;
    int best, unused; /* the first most probable allowed id; -1: none */
};

/* A larger logit has a larger key. */
__device__ __forceinline__ unsigned key_of(float z)
{
    unsigned b = __float_as_uint(z + 0.0f);
    return b ^ ((int)b >> 31 | 0x80000000u);
}

__device__ __forceinline__ bool allowed(const Law &law, int id)
{
    return !(law.banned[id >> 5] >> (id & 31) & 1);
}

__device__ __forceinline__ float weight(const Law &law, float z, float top)
{
    return exp2f((z - top) * (law.inverse * LOG2E));
}

__device__ __forceinline__ const unsigned *cut_of(const Law &law, int row)
{
    return law.top_k || law.top_p < 1 ? law.cut + 2 * row : nullptr;
}

/* top_k and top_p keep the keys above cut[0], and equal keys up to id cut[1]. */
__device__ __forceinline__ bool kept(const Law &law, const unsigned *cut, float z, int id)
{
    unsigned key = key_of(z);
    return allowed(law, id) && (!cut || key > cut[0] || (key == cut[0] && (unsigned)id <= cut[1]));
}

struct Best {
    float z;
    int id;
};

__device__ __forceinline__ Best better(Best a, Best b)
{
    return b.id >= 0 && (a.id < 0 || b.z > a.z || (b.z == a.z && b.id < a.id)) ? b : a;
}

__device__ __forceinline__ Best block_best(Best b, Best *shared)
{
#pragma unroll
    for (int d = 16; d; d >>= 1)
        b = better(
            b, Best{__shfl_xor_sync(0xffffffffu, b.z, d), __shfl_xor_sync(0xffffffffu, b.id, d)});
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = b;
    __syncthreads();
    for (int i = 0; i < blockDim.x / 32; i++) b = better(b, shared[i]);
    __syncthreads();
    return b;
}

/* Blocks: (chunks, rows). `over`: the result of a call without it. The call then sums again over
 * what top_k, top_p and min_p keep. */
extern "C" __global__ void __launch_bounds__(THREADS)
    draw_chunks(ChunkSums *out, Law law, const ChunkSums *over)
{
    __shared__ Best shared[32];
    __shared__ float sums[64];
    int row = blockIdx.y, first = blockIdx.x * CHUNK;
    const float *z = law.logits + row * law.ld;
    const unsigned *cut = over ? cut_of(law, row) : nullptr;
    float v[OWN], least = -INFINITE;
    next_may_start();
    previous_done();
    ChunkSums *mine = out + (size_t)row * gridDim.x + blockIdx.x;
    if (over && law.min_p > 0) {
        for (int c = 0; c < gridDim.x; c++)
            least = fmaxf(least, over[(size_t)row * gridDim.x + c].top_kept);
        least += logf(law.min_p) / law.inverse;
    }
    Best all = {-INFINITE, -1}, may = {-INFINITE, -1};
    unsigned in = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int id = first + i * THREADS + threadIdx.x;
        v[i] = id < law.vocab ? z[id] : -INFINITE;
        if (id >= law.vocab) continue;
        all = better(all, Best{v[i], id});
        if (kept(law, cut, v[i], id) && v[i] >= least)
            may = better(may, Best{v[i], id}), in |= 1u << i;
    }
    all = block_best(all, shared);
    may = block_best(may, shared);
    float sum = 0, sum_kept = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        if (v[i] > -INFINITE) sum += weight(law, v[i], all.z);
        if (in >> i & 1 && v[i] > -INFINITE) sum_kept += weight(law, v[i], may.z);
    }
    block_sums(sum, sum_kept, sums);
    if (threadIdx.x == 0) *mine = ChunkSums{all.z, sum, may.z, sum_kept, may.id, 0};
}

/* ---- top_k and top_p: find the cut ---- */

constexpr int CUT_THREADS = 1024, POOL = 5120;

/* Weights are added as integers, where 2^44 is the most probable id, so that the sum does not
 * depend on the order. */
__device__ __forceinline__ unsigned long long share_of(const Law &law, float z, float top)
{
    return (unsigned long long)(weight(law, z, top) * 17592186044416.0f);
}

struct Candidate {
    float z;
    int id;
};

struct Counted {
    unsigned long long mass;
    unsigned count;
};

/* The candidates of the search: the most probable ids if they fit the pool, else all ids. */
struct Search {
    const Law &law;
    const float *z;
    const Candidate *pool; /* NULL: all of z */
    int n;
    float top;
    Counted *scratch; /* [33] */
};

__device__ __forceinline__ Counted block_counted(Counted c, Counted *scratch)
{
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        c.mass += __shfl_xor_sync(0xffffffffu, c.mass, d);
        c.count += __shfl_xor_sync(0xffffffffu, c.count, d);
    }
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = c;
    __syncthreads();
    c = Counted{0, 0};
    for (int i = 0; i < CUT_THREADS / 32; i++)
        c.mass += scratch[i].mass, c.count += scratch[i].count;
    __syncthreads();
    return c;
}

/* Count candidates with a key in `low`..`high` and an id of at most `last`. */
__device__ __forceinline__ Counted counted(const Search &s, unsigned low, unsigned high,
                                           unsigned last)
{
    Counted c = {0, 0};
    for (int i = threadIdx.x; i < s.n; i += CUT_THREADS) {
        float z = s.pool ? s.pool[i].z : s.z[i];
        int id = s.pool ? s.pool[i].id : i;
        unsigned key = key_of(z);
        if (key < low || key > high || (unsigned)id > last || (!s.pool && !allowed(s.law, id)))
            continue;
        c.mass += share_of(s.law, z, s.top), c.count++;
    }
    return block_counted(c, s.scratch);
}

/* The largest key at or above which there are at least `count` candidates, or a mass of `mass`. */
__device__ __forceinline__ unsigned lowest_key(const Search &s, unsigned count,
                                               unsigned long long mass)
{
    unsigned key = 0;
    for (int bit = 31; bit >= 0; bit--) {
        Counted c = counted(s, key | 1u << bit, ~0u, ~0u);
        if (c.count >= count && c.mass >= mass) key |= 1u << bit;
    }
    return key;
}

/* The id of the n-th candidate with this key. */
__device__ __forceinline__ unsigned nth_id(const Search &s, unsigned key, unsigned n)
{
    unsigned id = 0;
    for (int bit = 30; bit >= 0; bit--)
        if (counted(s, key, key, (id | 1u << bit) - 1).count < n) id |= 1u << bit;
    return id;
}

/* One block per row. */
extern "C" __global__ void __launch_bounds__(CUT_THREADS) draw_cut(const ChunkSums *chunks, Law law)
{
    __shared__ Candidate pool[POOL];
    __shared__ Counted scratch[33];
    __shared__ int filled;
    int row = blockIdx.x, n_chunks = (law.vocab + CHUNK - 1) / CHUNK;
    const float *z = law.logits + row * law.ld;
    next_may_start();
    previous_done();
    float top = -INFINITE;
    for (int c = 0; c < n_chunks; c++)
        top = fmaxf(top, chunks[(size_t)row * n_chunks + c].top_kept);
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    /* each id below has less than 6e-6 of the most probable one's weight */
    float near = top - 12 / law.inverse;
    Counted all = {0, 0}, likely = {0, 0};
    for (int id = threadIdx.x; id < law.vocab; id += CUT_THREADS) {
        if (!allowed(law, id)) continue;
        unsigned long long share = share_of(law, z[id], top);
        all.mass += share, all.count++;
        if (z[id] < near) continue;
        likely.mass += share, likely.count++;
        int at = atomicAdd(&filled, 1);
        if (at < POOL) pool[at] = Candidate{z[id], id};
    }
    all = block_counted(all, scratch);
    likely = block_counted(likely, scratch);
    unsigned count = law.top_k && law.top_k < all.count ? law.top_k : all.count;
    bool few =
        likely.count <= POOL && (count <= likely.count || law.top_k == 0 || law.top_k >= all.count);
    if (count > likely.count && (double)likely.mass < (double)law.top_p * (double)all.mass)
        few = false;
    Search s = {law, z, few ? pool : nullptr, few ? (int)likely.count : law.vocab, top, scratch};

    /* The first `count`: all keys above `key`, and `equal` candidates with it. */
    unsigned key = 0, equal = ~0u;
    unsigned long long total = all.mass;
    if (count < all.count) {
        key = lowest_key(s, count, 0);
        Counted above = key == ~0u ? Counted{0, 0} : counted(s, key + 1, ~0u, ~0u),
                same = counted(s, key, key, ~0u);
        equal = count - above.count;
        total = above.mass + same.mass / same.count * equal;
    }
    if (law.top_p < 1) {
        unsigned long long want = (unsigned long long)((double)law.top_p * (double)total);
        unsigned cut = lowest_key(s, 1, want);
        Counted above = cut == ~0u ? Counted{0, 0} : counted(s, cut + 1, ~0u, ~0u),
                same = counted(s, cut, cut, ~0u);
        unsigned long long each = same.mass / same.count;
        unsigned need =
            above.mass >= want || !each ? 1 : (unsigned)((want - above.mass + each - 1) / each);
        equal = cut == key && equal < need ? equal : need;
        key = cut;
    }
    unsigned last = ~0u;
    if (equal != ~0u && equal < counted(s, key, key, ~0u).count) last = nth_id(s, key, equal);
    if (threadIdx.x == 0) law.cut[2 * row] = key, law.cut[2 * row + 1] = last;
}

/* ---- the token ---- */

/* Find the part at which the running sum of the parts exceeds `want`, and the sum before it. A warp
 * computes it, each lane with 1/32 of the n parts. If rounding leaves none, take the last part
 * above 0. */
__device__ __forceinline__ int passes(const float *part, int n, double want, double &before)
{
    int lane = threadIdx.x & 31, own = (n + 31) / 32, first = min(n, lane * own),
        end = min(n, first + own), last = -1;
    double sum = 0, start, total;
    for (int i = first; i < end; i++) sum += (double)part[i];
    double upto = sum;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        double other = __shfl_up_sync(0xffffffffu, upto, d);
        if (lane >= d) upto += other;
    }
    start = upto - sum, total = start;
    int found = -1;
    for (int i = first; i < end; i++) {
        if (part[i] > 0) last = i;
        if (found < 0 && part[i] > 0 && total + (double)part[i] > want) found = i, start = total;
        total += (double)part[i];
    }
    unsigned who = __ballot_sync(0xffffffffu, found >= 0),
             any = __ballot_sync(0xffffffffu, last >= 0);
    int from = who ? __ffs(who) - 1 : any ? 31 - __clz(any) : 0;
    int at = __shfl_sync(0xffffffffu, who ? found : last, from);
    before = __shfl_sync(0xffffffffu, start, from);
    return at;
}

/* The maxima, sum and most probable id over all chunks. */
struct Whole {
    float top, top_kept;
    double sum;
    int best;
};

/* Combine the chunks in a warp. part[c] becomes the sum of chunk c over the allowed ids, relative
 * to one maximum. */
__device__ __forceinline__ Whole put_together(const ChunkSums *chunks, int n, float inverse,
                                              float *part)
{
    int lane = threadIdx.x & 31;
    Best all = {-INFINITE, -1}, may = {-INFINITE, -1};
    for (int c = lane; c < n; c += 32) {
        all = better(all, Best{chunks[c].top, c});
        if (chunks[c].best >= 0) may = better(may, Best{chunks[c].top_kept, chunks[c].best});
    }
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        all = better(all, Best{__shfl_xor_sync(0xffffffffu, all.z, d),
                               __shfl_xor_sync(0xffffffffu, all.id, d)});
        may = better(may, Best{__shfl_xor_sync(0xffffffffu, may.z, d),
                               __shfl_xor_sync(0xffffffffu, may.id, d)});
    }
    double sum = 0;
    for (int c = lane; c < n; c += 32) {
        const ChunkSums &s = chunks[c];
        sum += (double)s.sum * (double)exp2f((s.top - all.z) * (inverse * LOG2E));
        part[c] = s.best >= 0 ? s.sum_kept * exp2f((s.top_kept - may.z) * (inverse * LOG2E)) : 0;
    }
#pragma unroll
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    __syncwarp();
    return Whole{all.z, may.z, sum, may.id};
}

/* Find the id in a chunk at which the running sum exceeds `want`, from which the sum of the earlier
 * chunks was subtracted. A block computes it. */
__device__ __forceinline__ int in_chunk(const Law &law, const unsigned *cut, const float *z,
                                        int first, float least, float top, double want,
                                        float *weights, float *sums)
{
    __shared__ int chosen;
    float own = 0;
    for (int i = 0; i < OWN; i++) {
        int at = threadIdx.x * OWN + i, id = first + at;
        bool in =
            id < law.vocab && kept(law, cut, z[id], id) && z[id] >= least && z[id] > -INFINITE;
        float w = in ? weight(law, z[id], top) : 0;
        weights[at] = w;
        own += w;
    }
    sums[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x < 32) {
        double before;
        int part = max(0, passes(sums, THREADS, want, before));
        if (threadIdx.x == 0) {
            double at = before;
            chosen = -1;
            for (int i = part * OWN; i < (part + 1) * OWN; i++) {
                at += (double)weights[i];
                if (weights[i] > 0) chosen = i;
                if (at > want && chosen >= 0) break;
            }
        }
    }
    __syncthreads();
    return chosen < 0 ? -1 : first + chosen;
}

/* One block per row. u: [rows], in [0, 1). ids and logp: the drawn id, and its log-probability
 * under the full softmax at the temperature. Shared memory: one float per chunk. */
extern "C" __global__ void __launch_bounds__(THREADS)
    draw_token(int *ids, float *logp, const ChunkSums *chunks, Law law, const double *u)
{
    extern __shared__ float part[];
    __shared__ float weights[CHUNK], sums[THREADS];
    __shared__ Whole whole;
    __shared__ double rest;
    __shared__ int chunk;
    int row = blockIdx.x, n = (law.vocab + CHUNK - 1) / CHUNK;
    const float *z = law.logits + row * law.ld;
    next_may_start();
    previous_done();
    if (threadIdx.x < 32) {
        Whole w = put_together(chunks + (size_t)row * n, n, law.inverse, part);
        double total = 0, before = 0;
        for (int c = threadIdx.x; c < n; c += 32) total += (double)part[c];
#pragma unroll
        for (int d = 16; d; d >>= 1) total += __shfl_xor_sync(0xffffffffu, total, d);
        int at = passes(part, n, u[row] * total, before);
        if (threadIdx.x == 0) {
            whole = w;
            chunk = at;
            /* Relative to the chunk's own maximum, for which its weights were computed. */
            rest = at < 0 ? 0
                          : (u[row] * total - before) /
                                (double)exp2f((chunks[(size_t)row * n + at].top_kept - w.top_kept) *
                                              (law.inverse * LOG2E));
        }
    }
    __syncthreads();
    int id = whole.best;
    if (!law.greedy && chunk >= 0) {
        float least = law.min_p > 0 ? whole.top_kept + logf(law.min_p) / law.inverse : -INFINITE;
        int found = in_chunk(law, cut_of(law, row), z, chunk * CHUNK, least,
                             chunks[(size_t)row * n + chunk].top_kept, rest, weights, sums);
        id = found >= 0 ? found : id;
    }
    if (threadIdx.x == 0) {
        id = id < 0 ? 0 : id; /* the logits are not finite */
        ids[row] = id;
        logp[row] = (float)((double)((z[id] - whole.top) * law.inverse) - log(whole.sum));
    }
}
