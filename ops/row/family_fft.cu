/* Kernels of Fourier transforms along rows, in the parts that family_fft.c puts together. Complex numbers
 * are pairs. A stage of radix R joins the transforms of R runs of L elements each. */

//@ functions
#ifndef OP_FFT
#define OP_FFT
template <typename T> struct op_fft_pair {
    T r, i;
};
__device__ inline void op_fft_sincospi(float a, float *s, float *c) { sincospif(a, s, c); }
__device__ inline void op_fft_sincospi(double a, double *s, double *c) { sincospi(a, s, c); }
/* The k-th power of the n-th root of unity: the angle within a quadrant is exact but for one rounding. */
template <typename T> __device__ op_fft_pair<T> op_fft_root(int k, int n, int sign)
{
    const int quadrant = (int)((4 * (long long)k + n / 2) / n);
    const T part = (T)(4 * (long long)k - (long long)quadrant * n) / (T)(2 * (long long)n);
    T s, c;
    op_fft_sincospi(part, &s, &c);
    if (quadrant & 1) {
        const T t = c;
        c = -s;
        s = t;
    }
    if (quadrant & 2) c = -c, s = -s;
    return {c, sign < 0 ? -s : s};
}
template <typename T, int N, int L, int R>
__device__ op_fft_pair<T> op_fft_sum(const op_fft_pair<T> *w, const op_fft_pair<T> *from, int e)
{
    const int t = e % (L * R), j = e / (L * R) * L + t % L;
    op_fft_pair<T> sum = {0, 0};
    int at = 0;
#pragma unroll(R <= 8 ? R : 4)
    for (int q = 0; q < R; q++) {
        const op_fft_pair<T> x = from[j + q * (N / R)], v = w[at];
        sum.r += x.r * v.r - x.i * v.i;
        sum.i += x.r * v.i + x.i * v.r;
        at += t * (N / (L * R));
        if (at >= N) at -= N;
    }
    return sum;
}
#endif

//@ pair
    typedef op_fft_pair<@type@> pair;

//@ read: the number of x at a place in C order
    const auto read = [&](const long long i) { return (@type@)@x@; };

//@ load_r2c
        const pair v = {read(row * @n@ + e), 0};

//@ load_c2c
        const pair v = {read((row * @n@ + e) * 2), read((row * @n@ + e) * 2 + 1)};

//@ load_c2r: the other half of a row is the conjugate of the first
        const int m = e <= @n@ / 2 ? e : @n@ - e;
        const @type@ part = read((row * (@n@ / 2 + 1) + m) * 2 + 1);
        const pair v = {read((row * (@n@ / 2 + 1) + m) * 2), e <= @n@ / 2 ? part : -part};

//@ store_pairs
        if (e < @out@) {
            y0[(row * @out@ + e) * 2] = (@stored@)(v.r * (@type@)@scale@);
            y0[(row * @out@ + e) * 2 + 1] = (@stored@)(v.i * (@type@)@scale@);
        }

//@ store_reals
        y0[row * @n@ + e] = (@stored@)(v.r * (@type@)@scale@);

//@ block: rows of one block lie in shared memory, beside the roots
    __shared__ pair shared[@places@];
    pair *from = shared + @n@ + threadIdx.y * 2 * @n@, *to = from + @n@;
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < @n@; e += blockDim.x * blockDim.y)
        shared[e] = op_fft_root<@type@>(e, @n@, @sign@);
    for (int e = threadIdx.x; e < @n@ && row < @rows@; e += blockDim.x) {

//@ block_loaded
        from[e] = v;
    }
    __syncthreads();

//@ block_stage
    for (int e = threadIdx.x; e < @n@ && row < @rows@; e += blockDim.x)
        to[e] = op_fft_sum<@type@, @n@, @run@, @radix@>(shared, from, e);
    __syncthreads();
    {
        pair *const last = from;
        from = to;
        to = last;
    }

//@ block_end
    for (int e = threadIdx.x; e < @n@ && row < @rows@; e += blockDim.x) {
        const pair v = from[e];

//@ roots
    ((pair *)t@roots@)[i] = op_fft_root<@type@>((int)i, @n@, @sign@);

//@ row
        const long long row = i / @n@;
        const int e = (int)(i % @n@);

//@ loaded
        ((pair *)t@to@)[i] = v;

//@ stage
        ((pair *)t@to@)[i] = op_fft_sum<@type@, @n@, @run@, @radix@>(
            (const pair *)t@roots@, (const pair *)t@from@ + row * @n@, e);

//@ stored
        const pair v = ((const pair *)t@from@)[i];
