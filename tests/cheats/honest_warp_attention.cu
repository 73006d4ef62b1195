// A warp a query: each lane scores its own keys, and the weights go round by shuffles. Scores past the query are never read.
// task: attention
// expect: ok
//@ launch attend<<<ceil_div(heads * seq, 4), 128, 4 * dim * 4>>>(q, k, v, o, heads * seq, seq, dim)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o, int queries, int seq, int dim)
{
    extern __shared__ float mine[];
    int at = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, i = at % seq;
    if (at >= queries) return;
    long long head = at / seq * (long long)seq * dim;
    float *own = mine + threadIdx.x / 32 * dim, top = -INFINITY, sum = 0, out[2] = {0, 0};
    for (int e = lane; e < dim; e += 32) own[e] = q[(long long)at * dim + e] * rsqrtf((float)dim);
    __syncwarp();
    for (int j0 = 0; j0 <= i; j0 += 32) {
        float s = -INFINITY;
        if (j0 + lane <= i) {
            s = 0;
            for (int e = 0; e < dim; e++) s += own[e] * k[head + (long long)(j0 + lane) * dim + e];
        }
        float high = s;
        for (int d = 16; d; d /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
        high = fmaxf(high, top);
        float keep = expf(top - high), p = expf(s - high), all = p;
        for (int d = 16; d; d /= 2) all += __shfl_xor_sync(0xffffffffu, all, d);
        sum = sum * keep + all, top = high, out[0] *= keep, out[1] *= keep;
        for (int j = 0; j < min(32, i - j0 + 1); j++) {
            float weight = __shfl_sync(0xffffffffu, p, j);
            for (int h = 0; h < 2; h++)
                if (lane + 32 * h < dim) out[h] += weight * v[head + (long long)(j0 + j) * dim + lane + 32 * h];
        }
    }
    for (int h = 0; h < 2; h++)
        if (lane + 32 * h < dim) o[(long long)at * dim + lane + 32 * h] = out[h] / sum;
}
