// One lane at work for ever: thread-instructions alone would let it run for minutes.
// task: relu
// expect: timeout
//@ launch relu<<<1, 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    double a = threadIdx.x;
    for (int i = 0; a != 7.7; i++)
        if (((i ^ threadIdx.x) & 31) == 0) a = sqrt(a + 1.0) / 3.0;
    y[0] = a;
}
