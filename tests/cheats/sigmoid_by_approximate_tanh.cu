// tanh.approx has eleven bits, on the simulator too.
// task: composed/bias_rowmul_sigmoid
// expect: wrong_result
//@ launch k<<<ceil_div(rows * cols, 256), 256>>>(x, bias, factor, y, rows * cols, cols)
extern "C" __global__ void k(const float *x, const float *bias, const float *factor, float *y, int n, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float q = (x[i] + bias[i % cols]) * factor[i / cols];
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.5f * q));
    y[i] = 0.5f * t + 0.5f;
}
