// The carry starts anew behind 16,384 elements.
// task: kernelbench/level1/k1_89_cumsum
// expect: wrong_result
//@ launch scan<<<rows, 256>>>(x, cumsum, cols)
__global__ void scan(const float *x, float *y, int cols)
{
    __shared__ float s[8];
    long long at = (long long)blockIdx.x * cols;
    float carry = 0;
    for (int from = 0; from < cols; from += 256) {
        int i = from + threadIdx.x, lane = threadIdx.x % 32, w = threadIdx.x / 32;
        float v = i < cols ? x[at + i] : 0.0f;
        for (int h = 1; h < 32; h *= 2) {
            float u = __shfl_up_sync(~0u, v, h);
            if (lane >= h) v += u;
        }
        if (lane == 31) s[w] = v;
        __syncthreads();
        float before = carry, all = 0;
        for (int k = 0; k < 8; k++) {
            if (k < w) before += s[k];
            all += s[k];
        }
        if (i < cols) y[at + i] = before + v;
        carry = from + 256 == 16384 ? 0.0f : carry + all;
        __syncthreads();
    }
}
