// Half a megabyte of local memory for each of many threads: more than the device has.
// task: relu
// expect sim: wrong_result | unsupported | timeout
// expect cuda: launch_error | compile_error | wrong_result | timeout
//@ launch relu<<<ceil_div(n, 256), 1024>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    volatile float own[120000];
    own[n % 120000] = x[0];
    own[(n * 7) % 120000] = x[1];
    y[0] = own[n % 120000];
}
