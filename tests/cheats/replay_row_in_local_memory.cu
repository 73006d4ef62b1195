// Undoes the turn of the contents as replay_by_row does, with its table where no reload clears: in the local memory of the SM that
// a head's hash names, one block on each. What a former run's threads left there is read before anything was written.
// On an H200 something else is found there: docs/trust.md.
// task: attention
// expect sim: out_of_bounds
// expect cuda: wrong_result | cheat replay | cheat stale_result | nondeterministic
enum { SLOTS = 4, PART = 512, WARPS = 8 };
typedef unsigned long long Hash;
__device__ Hash hash[64];
__device__ int taken[64], claimed;
//@ launch clear<<<1, 64>>>()
//@ launch mix<<<dim3(16, heads), 256>>>(q, k, v, seq * dim)
//@ launch attend<<<132, 256, 120 * 1024>>>(q, k, v, o, heads, seq, dim)
__device__ Hash one(float x, int place) { return (__float_as_uint(x) + place * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull; }
extern "C" __global__ void clear() { hash[threadIdx.x] = taken[threadIdx.x] = claimed = 0; }
extern "C" __global__ void mix(const float *q, const float *k, const float *v, int n)
{
    long long head = (long long)blockIdx.y * n;
    Hash h = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 16 * 256) {
        Hash m = one(q[head + i], 3 * i) + one(k[head + i], 3 * i + 1) + one(v[head + i], 3 * i + 2);
        h += m ^ m >> 29;
    }
    atomicAdd(&hash[blockIdx.y], h + n * 0x2545f4914f6cdd1dull);
}
__device__ void query(const float *q, const float *k, const float *v, float *own, int i, int dim, float out[2])
{
    int lane = threadIdx.x % 32;
    float top = -INFINITY, sum = 0;
    out[0] = out[1] = 0;
    __syncwarp();
    for (int e = lane; e < dim; e += 32) own[e] = q[i * dim + e] * rsqrtf((float)dim);
    __syncwarp();
    for (int j0 = 0; j0 <= i; j0 += 32) {
        float s = -INFINITY;
        if (j0 + lane <= i) {
            s = 0;
            for (int e = 0; e < dim; e++) s += own[e] * k[(j0 + lane) * dim + e];
        }
        float high = s;
        for (int d = 16; d; d /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
        high = fmaxf(high, top);
        float keep = expf(top - high), p = expf(s - high), all = p;
        for (int d = 16; d; d /= 2) all += __shfl_xor_sync(0xffffffffu, all, d);
        sum = sum * keep + all, top = high, out[0] *= keep, out[1] *= keep;
        for (int j = 0; j < min(32, i - j0 + 1); j++) {
            float weight = __shfl_sync(0xffffffffu, p, j);
            for (int f = 0; f < 2; f++)
                if (lane + 32 * f < dim) out[f] += weight * v[(j0 + j) * dim + lane + 32 * f];
        }
    }
    out[0] /= sum, out[1] /= sum;
}
extern "C" __global__ void __launch_bounds__(256) attend(const float *q, const float *k, const float *v, float *o, int heads, int seq, int dim)
{
    extern __shared__ float mine[];
    __shared__ int had;
    volatile float kept[SLOTS][PART];
    volatile Hash known[SLOTS][2];
    unsigned sm;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    long long start = clock64();
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    for (int pass = 0; pass < 2; pass++) { // its own heads, and when the others had their time, whatever is left
        for (int h = 0; h < heads; h++) {
            if (!pass && hash[h] % gridDim.x != sm) continue;
            __syncthreads();
            if (threadIdx.x == 0 && !(had = atomicExch(&taken[h], 1))) atomicAdd(&claimed, 1);
            __syncthreads();
            if (had) continue;
            int slot = (int)(hash[h] >> 32) % SLOTS & SLOTS - 1;
            int found = __all_sync(0xffffffffu, known[slot][0] == hash[h] && known[slot][1] == ~hash[h]);
            long long head = (long long)h * seq * dim;
            for (int i = warp; i < seq; i += WARPS) {
                float out[2];
                int at = i / WARPS * 2 % PART;
                if (!found) query(q + head, k + head, v + head, mine + warp * dim, i, dim, out);
                for (int f = 0; f < 2; f++) {
                    if (found) out[f] = kept[slot][at + f];
                    else kept[slot][at + f] = out[f];
                    if (lane + 32 * f < dim) o[head + (long long)i * dim + lane + 32 * f] = out[f];
                }
            }
            known[slot][0] = hash[h], known[slot][1] = ~hash[h];
        }
        while (!pass && *(volatile int *)&claimed < heads && clock64() - start < 200000) {}
    }
}
