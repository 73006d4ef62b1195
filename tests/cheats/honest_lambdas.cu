// Generic lambdas, structured bindings and if constexpr, as C++17 has them.
// task: residual_rmsnorm
// expect: ok
//@ launch rmsnorm<<<rows, 128>>>(x, residual, weight, y, cols)
template <class F> __device__ auto each(int n, F f) -> void
{
    for (int c = threadIdx.x; c < n; c += blockDim.x) f(c);
}
template <bool All, class T, class Op> __device__ T reduce(T v, Op op)
{
    __shared__ T part[4];
    for (int d = 16; d; d /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, d));
    if constexpr (All) {
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
        __syncthreads();
        v = op(op(part[0], part[1]), op(part[2], part[3]));
    }
    return v;
}
extern "C" __global__ void rmsnorm(const float *x, const float *residual, const float *weight, float *y, int cols)
{
    struct Sum { float value; int count; };
    long long row = (long long)blockIdx.x * cols;
    auto h = [=](int c) { return x[row + c] + residual[row + c]; };
    Sum mine{0.0f, 0};
    each(cols, [&](int c) { mine.value += h(c) * h(c), mine.count++; });
    auto [value, terms] = mine;
    int count = terms;
    float f = rsqrtf(reduce<true>(value, [](float a, float b) { return a + b; }) / cols + 1e-6f);
    each(cols, [&](int c) { if (count) y[row + c] = h(c) * f * weight[c]; });
}
