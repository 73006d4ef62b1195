// Sleeps for ever: no instruction budget sees much of it.
// task: relu
// expect: timeout
//@ launch relu<<<1, 1>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    for (volatile int stop = 0; !stop;) __nanosleep(1000000);
    y[0] = x[0];
}
