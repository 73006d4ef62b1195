// The last of four blocks adds what all four have left.
// task: row_sum
// expect: ok
//@ buffer float part[4 * rows]
//@ buffer unsigned int ticket[rows]
//@ launch clear<<<ceil_div(rows, 256), 256>>>(ticket, rows)
//@ launch add<<<dim3(4, rows), 128>>>(x, part, ticket, y, rows, cols)
__global__ void clear(unsigned int *ticket, int rows)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < rows) ticket[i] = 0;
}
__global__ void add(const float *x, float *part, unsigned int *ticket, float *y, int rows, int cols)
{
    __shared__ float s[4];
    __shared__ int last;
    int row = blockIdx.y, each = (cols + 3) / 4, from = blockIdx.x * each, to = min(cols, from + each);
    float v = 0;
    for (int i = from + threadIdx.x; i < to; i += 128) v += x[(long long)row * cols + i];
    for (int h = 16; h; h /= 2) v += __shfl_down_sync(~0u, v, h);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        part[4 * row + blockIdx.x] = s[0] + s[1] + s[2] + s[3];
        __threadfence();
        last = atomicAdd(&ticket[row], 1u) == 3;
        if (last) {
            __threadfence();
            volatile float *p = part + 4 * row;
            y[row] = p[0] + p[1] + p[2] + p[3];
        }
    }
}
