// Tiles of 8 x 8 words turned in registers: two planes of halves, each by movmatrix.
// task: transpose
// expect: ok
//@ launch transpose<<<dim3(ceil_div(cols, 8), ceil_div(rows, 8)), 32>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const unsigned *x, unsigned *y, int rows, int cols)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4 * 2, r = blockIdx.y * 8 + g, c = blockIdx.x * 8 + t;
    unsigned a = r < rows && c < cols ? x[(long long)r * cols + c] : 0, b = r < rows && c + 1 < cols ? x[(long long)r * cols + c + 1] : 0;
    unsigned low = __byte_perm(a, b, 0x5410), high = __byte_perm(a, b, 0x7632);
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(low));
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(high));
    r = blockIdx.x * 8 + g;
    c = blockIdx.y * 8 + t;
    if (r < cols && c < rows) y[(long long)r * rows + c] = __byte_perm(low, high, 0x5410);
    if (r < cols && c + 1 < rows) y[(long long)r * rows + c + 1] = __byte_perm(low, high, 0x7632);
}
