// Takes the device's heap until there is none, and writes where the last pointer points to.
// task: relu
// expect: unsupported
// says: device-side malloc is not available
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    char *p;
    do {
        p = (char *)malloc(65536);
        p[0] = 1;
    } while (p);
    y[0] = x[0];
}
