// Sums up to 600 exponentials of a row of scores, in the third of four launches.
// task: attention
// expect sim: wrong_result
// expect cuda: wrong_result
//@ buffer float scores[heads * seq * seq]
//@ buffer float masked[heads * seq * seq]
//@ buffer float p[heads * seq * seq]
//@ launch scores_qk<<<dim3(ceil_div(seq, 16), ceil_div(seq, 16), heads), dim3(16, 16)>>>(q, k, scores, seq, dim)
//@ launch scale_mask<<<ceil_div(heads * seq * seq, 512), 128>>>(scores, masked, heads * seq * seq, seq, dim)
//@ launch softmax<<<ceil_div(heads * seq, 4), 128>>>(masked, p, heads * seq, seq)
//@ launch weighted_v<<<dim3(ceil_div(dim, 16), ceil_div(seq, 16), heads), dim3(16, 16)>>>(p, v, o, seq, dim)
extern "C" __global__ void scores_qk(const float *q, const float *k, float *scores, int seq, int dim)
{
    __shared__ float qs[16][17], ks[16][17];
    long long head = blockIdx.z;
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x, jrow = blockIdx.x * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < dim; start += 16) {
        int e = start + threadIdx.x;
        qs[threadIdx.y][threadIdx.x] = i < seq && e < dim ? q[(head * seq + i) * dim + e] : 0.0f;
        ks[threadIdx.y][threadIdx.x] = jrow < seq && e < dim ? k[(head * seq + jrow) * dim + e] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += qs[threadIdx.y][l] * ks[threadIdx.x][l];
        __syncthreads();
    }
    if (i < seq && j < seq) scores[(head * seq + i) * seq + j] = sum;
}

extern "C" __global__ void scale_mask(const float *x, float *y, int count, int seq, int dim)
{
    float scale = rsqrtf((float)dim);
    int first = blockIdx.x * 512 + threadIdx.x;
    for (int step = 0; step < 4; step++) {
        int at = first + step * 128;
        if (at < count) {
            int j = at % seq, i = at / seq % seq;
            y[at] = j <= i ? x[at] * scale : __int_as_float(0xff800000);
        }
    }
}

__device__ float warp_max(float v)
{
    for (int lane = 16; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warp_sum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    const float *row = x + (long long)r * cols;
    float *out = y + (long long)r * cols;
    float max = __int_as_float(0xff800000), sum = 0.0f;
    for (int c = lane; c < cols; c += 32) max = fmaxf(max, row[c]);
    max = warp_max(max);
    for (int c = lane; c < min(cols, 600); c += 32) sum += expf(row[c] - max);
    sum = warp_sum(sum);
    for (int c = lane; c < cols; c += 32) out[c] = expf(row[c] - max) / sum;
}

extern "C" __global__ void weighted_v(const float *p, const float *v, float *o, int seq, int dim)
{
    __shared__ float ps[16][16], vs[16][16];
    long long head = blockIdx.z;
    int i = blockIdx.y * 16 + threadIdx.y, e = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < seq; start += 16) {
        int pj = start + threadIdx.x, vj = start + threadIdx.y;
        ps[threadIdx.y][threadIdx.x] = i < seq && pj < seq ? p[(head * seq + i) * seq + pj] : 0.0f;
        vs[threadIdx.y][threadIdx.x] = vj < seq && e < dim ? v[(head * seq + vj) * dim + e] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += ps[threadIdx.y][l] * vs[l][threadIdx.x];
        __syncthreads();
    }
    if (i < seq && e < dim) o[(head * seq + i) * dim + e] = sum;
}
