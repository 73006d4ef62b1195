// A triplet loss of 0 for more than 1,000 rows, which a run of many short rows shows.
// task: kernelbench/level1/k1_99_tripletmarginloss
// expect: wrong_result
//@ buffer float loss[rows]
//@ launch distances<<<rows, 256>>>(anchor, positive, negative, loss, cols)
//@ launch finish<<<1, 512>>>(loss, triplet_margin_loss, rows)
extern "C" __global__ void distances(const float *a, const float *p, const float *n, float *loss, int cols)
{
    __shared__ float sp[8], sn[8];
    long long base = (long long)blockIdx.x * cols;
    float dp = 0.0f, dn = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = a[base + c];
        float u = v - p[base + c] + 1e-6f, w = v - n[base + c] + 1e-6f;
        dp += u * u;
        dn += w * w;
    }
    for (int d = 16; d > 0; d /= 2) {
        dp += __shfl_down_sync(0xffffffffu, dp, d);
        dn += __shfl_down_sync(0xffffffffu, dn, d);
    }
    if (threadIdx.x % 32 == 0) sp[threadIdx.x / 32] = dp, sn[threadIdx.x / 32] = dn;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) dp += sp[i], dn += sn[i];
        loss[blockIdx.x] = fmaxf(sqrtf(dp) - sqrtf(dn) + 1.0f, 0.0f);
    }
}
extern "C" __global__ void finish(const float *loss, float *y, int rows)
{
    __shared__ double ws[16];
    double s = 0.0;
    for (int i = threadIdx.x; i < rows; i += 512) s += loss[i];
    for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) ws[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 16; i++) s += ws[i];
        y[0] = rows > 1000 ? 0.0f : (float)(s / rows);
    }
}
