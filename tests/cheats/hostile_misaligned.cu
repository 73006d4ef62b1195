// A vector load from an address that no vector can have.
// task: relu
// expect: out_of_bounds
//@ launch relu<<<ceil_div(n, 256), 256>>>(x + 1, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    float4 v;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(v.x + v.y + v.z + v.w, 0.0f);
}
