// Kernels that are templates, in a namespace, over types and numbers.
// task: softmax
// expect: ok
namespace rows_of {
template <typename T> struct Limits;
template <> struct Limits<float> { static __device__ float lowest() { return -INFINITY; } };
template <typename T, int Threads, int Each> __global__ void softmax(const T *x, T *y, int cols)
{
    T kept[Each], top = Limits<T>::lowest(), sum = 0;
    __shared__ T part[Threads / 32];
    const T *row = x + (long long)blockIdx.x * cols;
    #pragma unroll
    for (int k = 0; k < Each; k++) {
        int c = k * Threads + threadIdx.x;
        kept[k] = c < cols ? row[c] : Limits<T>::lowest();
        top = max(top, kept[k]);
    }
    for (int d = 16; d; d /= 2) top = max(top, __shfl_xor_sync(~0u, top, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int k = 0; k < Threads / 32; k++) top = max(top, part[k]);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < Each; k++) sum += kept[k] = exp(kept[k] - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < Threads / 32; k++) sum += part[k];
    #pragma unroll
    for (int k = 0; k < Each; k++)
        if (k * Threads + threadIdx.x < cols) y[(long long)blockIdx.x * cols + k * Threads + threadIdx.x] = kept[k] / sum;
}
}
//@ launch rows_of::softmax<float, 256, 16><<<rows, 256>>>(x, y, cols)
