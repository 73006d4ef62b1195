// Many rows by the library, few by a kernel.
// task: row_sum
// expect: ok
//@ when rows >= 4096
//@ op y = aten.sum.dim_IntList(x, dim=[1], keepdim=False)
//@ otherwise
//@ launch narrow<<<rows, 64>>>(x, y, cols)
//@ end
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
extern "C" __global__ void narrow(const float *x, float *y, int cols) { sum_row<64>(x, y, cols, 0); }
