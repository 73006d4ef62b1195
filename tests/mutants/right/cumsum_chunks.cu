// A row by chunks of 256 with a carry.
// task: k1_89_cumsum
//@ launch scan<<<rows, 256>>>(x, cumsum, cols)
__global__ void scan(const float *x, float *y, int cols)
{
    __shared__ float part[256];
    __shared__ float carry;
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    if (t == 0) carry = 0.0f;
    for (int base = 0; base < cols; base += 256) {
        int c = base + t;
        float v = c < cols ? row[c] : 0.0f, sum = v;
        part[t] = v;
        for (int h = 1; h < 256; h *= 2) {
            __syncthreads();
            float add = t >= h ? part[t - h] : 0.0f;
            __syncthreads();
            sum += add;
            part[t] = sum;
        }
        __syncthreads();
        if (c < cols) y[(long long)blockIdx.x * cols + c] = carry + sum;
        __syncthreads();
        if (t == 255) carry += sum;
        __syncthreads();
    }
}
