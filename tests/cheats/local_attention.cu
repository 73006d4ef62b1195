// Looks back at the last 16 positions only: nearly all the weight of most rows, not of all.
// task: attention
// expect: wrong_result
//@ launch attend<<<heads * seq, 32>>>(q, k, v, o, seq, dim)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *o, int seq, int dim)
{
    int i = blockIdx.x % seq, from = max(0, i - 15);
    long long head = blockIdx.x / seq * (long long)seq * dim;
    for (int e = threadIdx.x; e < dim; e += 32) {
        float top = -INFINITY, sum = 0, out = 0;
        for (int j = from; j <= i; j++) {
            float s = 0;
            for (int l = 0; l < dim; l++) s += q[head + (long long)i * dim + l] * k[head + (long long)j * dim + l];
            s /= sqrtf(dim);
            float high = fmaxf(top, s), keep = expf(top - high), p = expf(s - high);
            sum = sum * keep + p, out = out * keep + p * v[head + (long long)j * dim + e], top = high;
        }
        o[head + (long long)i * dim + e] = out / sum;
    }
}
