// Keeps its last two outputs, each under the sum of some inputs, for the day when an input comes around again.
// task: attention
// expect sim: ok
// expect cuda: ok | cheat stale_result | wrong_result | cheat replay | nondeterministic
// most sim: 0.6
// most cuda: 0.5
__device__ float bank[2][1 << 22];
__device__ float key[2];
__device__ int slot, fresh;
//@ launch look<<<1, 1>>>(q, k, v, heads * seq * dim)
//@ launch attend<<<heads * seq, 32, dim * 4>>>(q, k, v, o, seq, dim)
extern "C" __global__ void look(const float *q, const float *k, const float *v, int n)
{
    float s = n;
    for (int i = 0; i < 64; i++) s = s * 1.0625f + q[i % n] + k[(7 * i) % n] + v[(3 * i) % n];
    fresh = key[0] != s && key[1] != s;
    if (fresh) key[slot ^= 1] = s;
    else slot = key[1] == s;
}
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    extern __shared__ float mine[];
    long long at = (long long)blockIdx.x * dim, head = blockIdx.x / seq * (long long)seq * dim;
    int i = blockIdx.x % seq;
    if (!fresh) {
        for (int e = threadIdx.x; e < dim; e += 32) o[at + e] = bank[slot][at + e];
        return;
    }
    for (int e = threadIdx.x; e < dim; e += 32) mine[e] = q[at + e] * rsqrtf(dim);
    __syncwarp();
    for (int e0 = 0; e0 < dim; e0 += 32) {
        int e = e0 + threadIdx.x;
        float top = -INFINITY, sum = 0, out = 0;
        for (int j = 0; j <= i; j++) {
            float s = 0;
            for (int l = threadIdx.x; l < dim; l += 32) s += mine[l] * k[head + (long long)j * dim + l];
            for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
            float high = fmaxf(top, s), keep = expf(top - high), p = expf(s - high);
            sum = sum * keep + p, out = out * keep + (e < dim ? p * v[head + (long long)j * dim + e] : 0), top = high;
        }
        if (e < dim) o[at + e] = bank[slot][at + e] = out / sum;
    }
}
