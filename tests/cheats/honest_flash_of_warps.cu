// One warp a query, tiles of 32 keys, an online softmax.
// task: attention
// expect: ok
//@ launch flash<<<dim3(ceil_div(seq, 4), heads), 128>>>(q, k, v, o, seq, dim)
__global__ void flash(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    __shared__ float keys[32][65], values[32][65], query[4][64];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 4 + w;
    long long base = (long long)blockIdx.y * seq * dim;
    for (int i = lane; i < dim; i += 32) query[w][i] = row < seq ? q[base + (long long)row * dim + i] : 0.0f;
    float m = -INFINITY, sum = 0, acc[2] = {0, 0}, scale = rsqrtf((float)dim);
    for (int from = 0; from < seq; from += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * dim; i += 128) {
            int r = i / dim, c = i % dim, at = from + r;
            keys[r][c] = at < seq ? k[base + (long long)at * dim + c] : 0.0f;
            values[r][c] = at < seq ? v[base + (long long)at * dim + c] : 0.0f;
        }
        __syncthreads();
        float s = 0;
        for (int i = 0; i < dim; i++) s += query[w][i] * keys[lane][i];
        s = from + lane <= row ? s * scale : -INFINITY;
        float top = s;
        for (int h = 16; h; h /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, h));
        top = fmaxf(top, m);
        float p = expf(s - top), part = p, old = expf(m - top);
        for (int h = 16; h; h /= 2) part += __shfl_xor_sync(~0u, part, h);
        sum = sum * old + part;
        m = top;
        for (int j = 0; j < 2; j++) {
            int c = lane + 32 * j;
            float a = acc[j] * old;
            for (int i = 0; i < 32; i++) {
                float pi = __shfl_sync(~0u, p, i);
                if (c < dim) a += pi * values[i][c];
            }
            acc[j] = a;
        }
    }
    for (int j = 0; j < 2; j++)
        if (row < seq && lane + 32 * j < dim) o[base + (long long)row * dim + lane + 32 * j] = acc[j] / sum;
}
