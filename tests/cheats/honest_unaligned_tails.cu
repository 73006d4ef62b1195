// Vector stores where both of a row's ends allow it, single ones before and after; odd rows begin in the middle of a vector.
// task: transpose
// expect: ok
//@ launch transpose<<<dim3(ceil_div(rows, 128), cols), 32>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    int c = blockIdx.y;
    long long out = (long long)c * rows + blockIdx.x * 128, end = min((long long)c * rows + rows, out + 128);
    long long first = (out + 3) / 4 * 4, last = end / 4 * 4, at = first + threadIdx.x * 4;
    auto in = [&](long long o) { return x[(o - (long long)c * rows) * cols + c]; };
    if (out + threadIdx.x < min(first, end)) y[out + threadIdx.x] = in(out + threadIdx.x);
    if (at < last) *(float4 *)(y + at) = make_float4(in(at), in(at + 1), in(at + 2), in(at + 3));
    if (last >= first && last + threadIdx.x < end) y[last + threadIdx.x] = in(last + threadIdx.x);
}
