// Objects with virtual functions: lanes of a warp call different ones through the same pointer.
// task: relu
// expect: ok
struct Map {
    float floor;
    __device__ virtual float of(float v) const = 0;
};
struct Larger : Map {
    __device__ float of(float v) const override { return fmaxf(v, floor); }
};
struct Negated : Map {
    __device__ float of(float v) const override { return -fminf(-v, floor) + 0.0f; }
};
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    Larger a;
    Negated b;
    a.floor = b.floor = 0.0f;
    int i = blockIdx.x * 256 + threadIdx.x;
    const Map *map = i % 3 ? (const Map *)&a : (const Map *)&b;
    if (i < n) y[i] = map->of(x[i]);
}
