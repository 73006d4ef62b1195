// Half a megabyte of local memory for each of many threads: more than a device gives.
// task: relu
// expect: launch_error
// says: takes 480000 bytes of local memory a thread
//@ launch relu<<<ceil_div(n, 256), 1024>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    volatile float own[120000];
    own[n % 120000] = x[0];
    own[(n * 7) % 120000] = x[1];
    y[0] = own[n % 120000];
}
