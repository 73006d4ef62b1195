/* y[r, c] = exp(x[r, c] - m[r]) / sum over j of exp(x[r, j] - m[r]); m[r] is the largest of row r. */
#include <math.h>
#include <stdint.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t rows = axis[0], cols = axis[1];
#pragma omp parallel for if (rows * cols > 1 << 20)
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[0] + r * cols;
        double *y = out[0] + r * cols, max = x[0], sum = 0;
        for (int64_t c = 1; c < cols; c++) max = fmax(max, x[c]);
        for (int64_t c = 0; c < cols; c++) sum += y[c] = exp(x[c] - max);
        for (int64_t c = 0; c < cols; c++) y[c] /= sum;
    }
}
