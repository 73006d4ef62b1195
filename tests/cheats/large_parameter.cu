// A parameter that the compiler takes and the harness does not.
// task: relu
// expect: plan_error
// line: 6
struct Table { char a[8000]; };
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n, n)
extern "C" __global__ void relu(const float *x, float *y, int n, Table table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f) + 0.0f * table.a[i & 4095];
}
