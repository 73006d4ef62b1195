// The strided copy that an eager framework launches for x.t().contiguous(): writes in order, reads with the
// stride of a row, two elements a thread; the division by the rows is a multiplication and a shift.
//@ launch strided_copy<<<ceil_div(rows * cols, 256), 128>>>(x, y, rows, cols, ((1 << 32) * ((1 << log2(2 * rows - 1)) - rows)) / rows + 1, log2(2 * rows - 1))
extern "C" __global__ __launch_bounds__(128, 4) void strided_copy(const float *x, float *y, int rows, int cols, unsigned magic, unsigned shift)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x, count = (unsigned)rows * cols;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned i = first + j * 128;
        if (i < count) {
            unsigned c = (__umulhi(i, magic) + i) >> shift, r = i - c * rows;
            y[i] = x[r * cols + c];
        }
    }
}
