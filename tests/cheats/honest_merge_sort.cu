// CUB's merge sort reads the key behind the last one, and does not use it.
// task: relu
// expect: ok
#include <cub/warp/warp_merge_sort.cuh>
//@ launch relu<<<ceil_div(n, 128), 128>>>(x, y, n)
struct Place {
    __device__ bool operator()(int a, int b) { return a < b; }
};
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    typedef cub::WarpMergeSort<int, 4, 32> Sort;
    __shared__ typename Sort::TempStorage room[4];
    int first = blockIdx.x * 128 + threadIdx.x / 32 * 32, lane = threadIdx.x % 32, place[4];
    for (int j = 0; j < 4; j++) place[j] = (lane * 4 + j) * 37 % 128;
    Sort(room[threadIdx.x / 32]).Sort(place, Place());
    int i = first + place[0] / 4;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
