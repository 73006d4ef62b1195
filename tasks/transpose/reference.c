/* y[c, r] = x[r, c]. */
#include <stdint.h>

enum { BLOCK = 16 }; /* rows of x that are written side by side into the rows of y */

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t rows = axis[0], cols = axis[1];
    const double *x = in[0];
    double *y = out[0];
#pragma omp parallel for if (rows * cols > 1 << 20)
    for (int64_t first = 0; first < rows; first += BLOCK)
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = first; r < first + BLOCK && r < rows; r++) y[c * rows + r] = x[r * cols + c];
}
