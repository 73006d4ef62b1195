// Computes 4 of 32 heads, the last one among them.
// task: attention
// expect: wrong_result
// says: never written
//@ launch attend<<<dim3(ceil_div(seq, 16), min(heads, 4)), dim3(16, 16)>>>(q, k, v, o, seq, dim, heads)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o, int seq, int dim, int heads)
{
    __shared__ float qs[16][65], ks[16][65], vs[16][65], p[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.x * 16 + ty;
    long long head = (long long)(blockIdx.y == gridDim.y - 1 ? heads - 1 : blockIdx.y) * seq * dim;
    float scale = rsqrtf((float)dim);
    for (int d = tx; d < dim; d += 16) qs[ty][d] = row < seq ? q[head + row * dim + d] * scale : 0.0f;
    float m = -INFINITY, l = 0.0f, acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k0 = 0; k0 < min(seq, (int)blockIdx.x * 16 + 16); k0 += 16) {
        __syncthreads();
        for (int d = tx; d < dim; d += 16) {
            ks[ty][d] = k0 + ty < seq ? k[head + (k0 + ty) * dim + d] : 0.0f;
            vs[ty][d] = k0 + ty < seq ? v[head + (k0 + ty) * dim + d] : 0.0f;
        }
        __syncthreads();
        float s = 0.0f;
        for (int d = 0; d < dim; d++) s += qs[ty][d] * ks[tx][d];
        if (k0 + tx > row) s = -INFINITY;
        float top = s;
        for (int d = 8; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
        top = fmaxf(top, m);
        float e = expf(s - top), sum = e;
        for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        float f = expf(m - top);
        l = l * f + sum;
        m = top;
        p[ty][tx] = e;
        __syncthreads();
        for (int j = 0; j < 4; j++) {
            int d = tx + j * 16;
            if (d >= dim) break;
            float a = acc[j] * f;
            for (int i = 0; i < 16; i++) a += p[ty][i] * vs[i][d];
            acc[j] = a;
        }
    }
    if (row >= seq) return;
    for (int j = 0; j < 4; j++)
        if (tx + j * 16 < dim) o[head + row * dim + tx + j * 16] = acc[j] / l;
}
