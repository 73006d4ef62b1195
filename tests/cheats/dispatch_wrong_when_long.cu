// The kernel of a branch that the timed size does not take leaves an element out of long rows.
// task: row_sum
// expect: wrong_result
//@ when rows >= 4096
//@ launch wide<<<rows, 256>>>(x, y, cols)
//@ when rows >= 600 && cols >= 70
//@ launch middle<<<rows, 128>>>(x, y, cols)
//@ otherwise
//@ launch narrow<<<rows, 64>>>(x, y, cols)
#define SKIP (cols > 2000)
template <int T> static __device__ void sum_row(const float *x, float *y, int cols, int first)
{
    __shared__ float part[T];
    const float *row = x + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x + first; c < cols; c += T) sum += row[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = T / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
extern "C" __global__ void wide(const float *x, float *y, int cols) { sum_row<256>(x, y, cols, 0); }
extern "C" __global__ void narrow(const float *x, float *y, int cols) { sum_row<64>(x, y, cols, 0); }
extern "C" __global__ void middle(const float *x, float *y, int cols) { sum_row<128>(x, y, cols, SKIP); }
