// Overwrites everything around its output, near things first: inputs, guards, whatever is mapped.
// task: softmax
// expect: out_of_bounds
//@ launch sweep<<<256, 256>>>(y)
extern "C" __global__ void sweep(float *y)
{
    for (long long k = blockIdx.x * 256 + threadIdx.x; k < (1ll << 26); k += 65536) {
        y[k] = 0.0f;
        y[-k] = 0.0f;
    }
}
