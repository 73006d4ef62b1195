// Vectors of eight elements wherever vectors of four would fit.
// task: composed/hswish_gate_relu
// expect: out_of_bounds | wrong_result
//@ launch k<<<ceil_div(rows * cols, 1024), 256>>>(x, gate, y, rows * cols)
template <int V> struct alignas(4 * V) Pack {
    float v[V];
};
template <int V> __device__ void body(const float *x, const float *gate, float *y, int n)
{
    for (int i = (blockIdx.x * 256 + threadIdx.x) * V; i < n; i += gridDim.x * 256 * V) {
        Pack<V> a = *(const Pack<V> *)(x + i), b = *(const Pack<V> *)(gate + i);
        for (int k = 0; k < V; k++) {
            float h = a.v[k] * fminf(fmaxf(a.v[k] + 3, 0), 6) / 6 * b.v[k];
            a.v[k] = h < 0 ? 0 : h;
        }
        *(Pack<V> *)(y + i) = a;
    }
}
__global__ void k(const float *x, const float *gate, float *y, int n)
{
    if (n % 4 == 0)
        body<8>(x, gate, y, n);
    else
        body<1>(x, gate, y, n);
}
