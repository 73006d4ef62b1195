// A query a thread, 64 queries a block, keys and values by tiles of 32 in shared memory.
// task: attention
//@ launch attend<<<dim3(ceil_div(seq, 64), heads), 64, 32 * dim * 8>>>(q, k, v, o, seq, dim)
__global__ void attend(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    extern __shared__ float tile[];
    float *ks = tile, *vs = tile + 32 * dim;
    int i = blockIdx.x * 64 + threadIdx.x, last = min(blockIdx.x * 64 + 63, seq - 1);
    long long head = (long long)blockIdx.y * seq * dim;
    float top = -INFINITY, sum = 0.0f, scale = rsqrtf((float)dim), out[64];
    for (int e = 0; e < 64; e++) out[e] = 0.0f;
    for (int j0 = 0; j0 <= last; j0 += 32) {
        __syncthreads();
        for (int t = threadIdx.x; t < 32 * dim; t += 64) {
            int j = j0 + t / dim;
            ks[t] = j < seq ? k[head + (long long)j * dim + t % dim] : 0.0f;
            vs[t] = j < seq ? v[head + (long long)j * dim + t % dim] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < 32 && j0 + j <= i && i < seq; j++) {
            float dot = 0.0f;
            for (int e = 0; e < dim; e++) dot += q[head + (long long)i * dim + e] * ks[j * dim + e];
            dot *= scale;
            float next = fmaxf(top, dot), keep = expf(top - next), p = expf(dot - next);
            sum = sum * keep + p;
            for (int e = 0; e < 64; e++)
                if (e < dim) out[e] = out[e] * keep + p * vs[j * dim + e];
            top = next;
        }
    }
    if (i >= seq) return;
    for (int e = 0; e < 64; e++)
        if (e < dim) o[head + (long long)i * dim + e] = out[e] / sum;
}
