// Writes to address zero.
// task: relu
// expect: out_of_bounds
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    volatile float *nowhere = (float *)(unsigned long long)(n < 0);
    *nowhere = x[0];
}
