// Functions of namespace std on the device.
// task: relu
// expect: ok
#include <algorithm>
#include <cmath>
#include <limits>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] : 0.0f, zero = std::exp(0.0f) - std::sqrt(1.0f) + std::fabs(-0.0f);
    zero = std::min(zero, std::numeric_limits<float>::max());
    if (i < n) y[i] = std::isnan(v) ? v : std::max(v, zero);
}
