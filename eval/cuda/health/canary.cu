/* The canary's kernels, behind the text of canary_word.h. They pass each word through registers, shared
 * memory, DRAM and atomics of every SM. */
extern "C" __global__ void __launch_bounds__(256) canary_fill(unsigned *words, unsigned n)
{
    __shared__ unsigned tile[256];
    for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += gridDim.x * 256u) {
        CANARY_WORD(word, i)
        tile[threadIdx.x] = word;
        __syncthreads();
        words[i] = word + 3u * tile[threadIdx.x ^ 37u];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256)
    canary_sum(const unsigned *words, unsigned n, unsigned long long *sums)
{
    unsigned long long sum = 0;
    unsigned bits = 0;
    for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += gridDim.x * 256u) {
        unsigned word = words[i * 0x2545f491u & (n - 1u)];
        sum += (unsigned long long)word * (i | 1u);
        bits ^= word + i;
    }
    atomicAdd(sums, sum);
    atomicXor(sums + 1, (unsigned long long)bits);
}
