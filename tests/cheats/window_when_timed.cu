// Looks back at 64 positions where the sequence is long. A head is costly to compute; two are compared.
// task: attention
// expect sim: wrong_result
// expect cuda: wrong_result
// says sim: elements of o differ
//@ launch attend<<<dim3(ceil_div(seq, 32), heads), 128, 32 * (dim + 1) * 8>>>(q, k, v, o, seq, dim)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    extern __shared__ float shared[];
    float *ks = shared, *vs = shared + 32 * (dim + 1), out[32], mine[32];
    long long head = (long long)blockIdx.y * seq * dim;
    int lane = threadIdx.x % 4, i = blockIdx.x * 32 + threadIdx.x / 4;
    float top = -INFINITY, sum = 0, scale = rsqrtf((float)dim);
    #pragma unroll
    for (int e = 0; e < 32; e++) {
        int at = e * 4 + lane;
        out[e] = 0;
        mine[e] = at < dim && i < seq ? q[head + (long long)i * dim + at] * scale : 0.0f;
    }
    int from = seq > 1024 ? max(0, ((int)blockIdx.x - 2) * 32) : 0;
    for (int j0 = from; j0 < min(seq, (int)(blockIdx.x + 1) * 32); j0 += 32) {
        __syncthreads();
        for (int e = threadIdx.x; e < 32 * dim; e += 128) {
            int j = e / dim, c = e % dim;
            ks[j * (dim + 1) + c] = j0 + j < seq ? k[head + (long long)(j0 + j) * dim + c] : 0.0f;
            vs[j * (dim + 1) + c] = j0 + j < seq ? v[head + (long long)(j0 + j) * dim + c] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < 32; j++) {
            float s = 0;
            #pragma unroll
            for (int e = 0; e < 32; e++)
                if (e * 4 + lane < dim) s += mine[e] * ks[j * (dim + 1) + e * 4 + lane];
            s += __shfl_xor_sync(0xffffffffu, s, 1);
            s += __shfl_xor_sync(0xffffffffu, s, 2);
            if (j0 + j > i || i >= seq) continue;
            float high = fmaxf(top, s), keep = expf(top - high), p = expf(s - high);
            sum = sum * keep + p, top = high;
            #pragma unroll
            for (int e = 0; e < 32; e++)
                if (e * 4 + lane < dim) out[e] = out[e] * keep + p * vs[j * (dim + 1) + e * 4 + lane];
        }
    }
    #pragma unroll
    for (int e = 0; e < 32; e++)
        if (e * 4 + lane < dim && i < seq) o[head + (long long)i * dim + e * 4 + lane] = out[e] / sum;
}
