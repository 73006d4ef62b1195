// CUB: a row sum by BlockHistogram: signs are counted and put back
// task: row_sums
// expect: ok
//@ launch sums<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void sums(const float *x, float *y, int cols)
{
    using Histogram = cub::BlockHistogram<unsigned char, 128, 1, 4, cub::BLOCK_HISTO_ATOMIC>;
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ Histogram::TempStorage room;
    __shared__ Reduce::TempStorage more;
    __shared__ unsigned count[4];
    unsigned char bin[1] = {(unsigned char)(threadIdx.x % 4)};
    Histogram(room).Histogram(bin, count);
    __syncthreads();
    float v = 0;
    for (int i = threadIdx.x; i < cols; i += 128) v += x[(size_t)blockIdx.x * cols + i];
    float s = Reduce(more).Sum(v);
    if (!threadIdx.x) y[blockIdx.x] = s * (float)count[1] / 32.0f;
}
