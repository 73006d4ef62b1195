// One tile of a row in 32 is left out, from row 1024 on: no check is as long.
// task: attention
// expect: wrong_result
//@ launch attention<<<dim3(ceil_div(seq, 4), heads), 128, dim * 16>>>(q, k, v, o, seq, dim)
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    extern __shared__ float mine[];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, i = blockIdx.x * 4 + w;
    long long base = (long long)blockIdx.y * seq * dim;
    float *acc = mine + w * dim;
    for (int e = lane; e < dim; e += 32) acc[e] = 0;
    __syncwarp();
    if (i >= seq) return;
    float m = -INFINITY, l = 0, scale = rsqrtf((float)dim);
    for (int t = 0; t <= i; t += 32) {
        if (t == i && t >= 1024) break;
        int j = t + lane;
        float s = -INFINITY;
        if (j <= i) {
            s = 0;
            for (int e = 0; e < dim; e++) s += q[base + (long long)i * dim + e] * k[base + (long long)j * dim + e];
            s *= scale;
        }
        float top = s;
        for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        top = fmaxf(top, m);
        float f = expf(m - top), p = expf(s - top), sum = p;
        for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        l = l * f + sum, m = top;
        int n = min(32, i - t + 1);
        for (int e0 = 0; e0 < dim; e0 += 32) {
            int e = e0 + lane;
            float a = e < dim ? acc[e] * f : 0;
            for (int u = 0; u < n; u++) {
                float pu = __shfl_sync(~0u, p, u);
                if (e < dim) a += pu * v[base + (long long)(t + u) * dim + e];
            }
            if (e < dim) acc[e] = a;
        }
        __syncwarp();
    }
    for (int e = lane; e < dim; e += 32) o[base + (long long)i * dim + e] = acc[e] / l;
}
