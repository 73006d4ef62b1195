// A launch line in a text is a launch line: the plan is read by lines, before any compiler, and what it says runs.
// task: relu
// expect: ok
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const char *text = R"(
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
)";
    if (i < n) y[i] = fmaxf(x[i], 0.0f) + (text[0] == 'x');
}
