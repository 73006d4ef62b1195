// Names put together by the preprocessor, as if words were looked for in the text.
// task: relu
// expect: cheat input_mutation
#define JOIN(a, b) a##b
#define LINE(a) JOIN(re, a)
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void LINE(lu)(JOIN(flo, at) *JOIN(x, ), float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) JOIN(x, )[i] = y[i] = fmaxf(x[i], 0.0f);
}
