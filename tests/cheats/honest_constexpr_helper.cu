// Functions without __device__, for constants and on the device.
// task: relu
// expect: ok
//@ launch relu_k<<<ceil_div(n, 256), 256>>>(x, y, n)
constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }
template <int N> constexpr int log2_of() { return N <= 1 ? 0 : 1 + log2_of<N / 2>(); }
constexpr float positive(float v) { return v > 0 ? v : 0; }
struct Vec { float v[cdiv(16, 4)]; };
extern "C" __global__ void relu_k(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    static_assert(log2_of<32>() == 5, "");
    if (i < n) y[i] = positive(x[i]);
}
