// A kernel for few elements and another one for many, as host code chooses.
// task: kernelbench/level1/k1_5_matrix_scalar_multiplication
// expect: ok
//@ for t in 0..(rows * cols < 1000000)
//@ launch small<<<ceil_div(rows * cols, 256), 256>>>(A, mul, rows * cols)
//@ for t in 0..(rows * cols >= 1000000)
//@ launch big<<<ceil_div(rows * cols, 1024), 256>>>(A, mul, rows * cols)
extern "C" __global__ void small(const float* x, float* y, int n) { int i = blockIdx.x*256 + threadIdx.x; if (i < n) y[i] = x[i] * 3.14f; }
extern "C" __global__ void big(const float* x, float* y, int n) { int i = blockIdx.x*1024 + threadIdx.x*4; if (i < n) { float4 v = *(const float4*)(x+i); v.x *= 3.14f; v.y *= 3.14f; v.z *= 3.14f; v.w *= 3.14f; *(float4*)(y+i) = v; } }
