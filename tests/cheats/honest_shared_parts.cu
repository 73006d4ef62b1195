// Arrays of odd sizes and alignments beside dynamic shared memory, each used to its last byte, one of them by
// several types.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 128), 128, 516>>>(x, y, n)
union Both {
    float numbers[129];
    unsigned char bytes[516];
};
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    extern __shared__ float copy[];
    __shared__ Both line;
    __shared__ unsigned char sign[131];
    __shared__ alignas(16) float4 four[33];
    int t = threadIdx.x, first = blockIdx.x * 128;
    for (int i = t; i < 129; i += 128) line.numbers[i] = copy[i] = first + i < n ? x[first + i] : 0.0f;
    __syncthreads();
    for (int i = t; i < 131; i += 128) sign[i] = i < 129 ? line.bytes[4 * i + 3] >> 7 : 0;
    if (t < 33) {
        float one = t == 32 ? line.numbers[128] : 0.0f;
        four[t] = t < 32 ? make_float4(copy[4 * t], copy[4 * t + 1], copy[4 * t + 2], copy[4 * t + 3])
                         : make_float4(one, one, one, one);
    }
    __syncthreads();
    const float *flat = (const float *)four;
    if (first + t < n) y[first + t] = sign[t] | sign[130] ? fmaxf(line.numbers[t], 0.0f) : flat[t];
}
