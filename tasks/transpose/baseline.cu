// The strided copy that an eager framework launches for x.t().contiguous(): writes in order, reads
// with the stride of a row, index arithmetic by division.
//@ launch strided_copy<<<ceil_div(rows * cols, 512), 128>>>(x, y, rows, cols)
extern "C" __global__ void strided_copy(const float *x, float *y, int rows, int cols)
{
    int first = blockIdx.x * 512 + threadIdx.x;
    for (int j = 0; j < 4; j++) {
        int i = first + j * 128;
        if (i < rows * cols) {
            int c = i / rows, r = i % rows;
            y[i] = x[r * cols + c];
        }
    }
}
