/* Kernels of pools. */

//@ flat
    const long long step = (long long)blockDim.x * gridDim.x;
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (; at < n; at += step) {
        const @index@ i = at;
        const int o1 = i % out1, o0 = i / out1 % out0;
        const int channel = i / out1 / out0 % channels;
        const int entry = i / out1 / out0 / channels;

//@ framed
    const int o2 = blockIdx.x * blockDim.x + threadIdx.x;
    const int o1 = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z@round@;
    const int o0 = z % out0;
    const long long slice = z / out0;
    if (@bound@o1 < out1 && o2 < out2) {
