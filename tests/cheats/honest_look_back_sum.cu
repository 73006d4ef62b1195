// Decoupled look-back: a row's parts by tickets, each publishing its own sum, then the sum of all up to it.
// task: row_sum
// expect: ok
//@ buffer unsigned long long state[rows * ceil_div(cols, 512)]
//@ buffer unsigned ticket[1]
//@ launch clear<<<ceil_div(rows * ceil_div(cols, 512), 128), 128>>>(state, ticket, rows * ceil_div(cols, 512))
//@ launch row_sum<<<rows * ceil_div(cols, 512), 128>>>(x, y, state, ticket, cols, ceil_div(cols, 512))
extern "C" __global__ void clear(unsigned long long *state, unsigned *ticket, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) state[i] = 0;
    if (i == 0) *ticket = 0;
}
__device__ unsigned long long word(unsigned flag, float v) { return (unsigned long long)flag << 32 | __float_as_uint(v); }
extern "C" __global__ void row_sum(const float *x, float *y, unsigned long long *state, unsigned *ticket, int cols, int parts)
{
    __shared__ unsigned mine;
    __shared__ float part[4];
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
    __syncthreads();
    int r = mine / parts, p = mine % parts;
    float s = 0;
    for (int c = p * 512 + threadIdx.x; c < min(cols, (p + 1) * 512); c += 128) s += x[(long long)r * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x) return;
    s = part[0] + part[1] + part[2] + part[3];
    atomicExch(&state[mine], word(p ? 1 : 2, s));
    for (unsigned k = mine; p && k-- > mine - p;) {
        unsigned long long seen;
        while (!((seen = atomicAdd(&state[k], 0ull)) >> 32)) {}
        s += __uint_as_float((unsigned)seen);
        if (seen >> 32 == 2) break;
    }
    if (p) atomicExch(&state[mine], word(2, s));
    if (p == parts - 1) y[r] = s;
}
