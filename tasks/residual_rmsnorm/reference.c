/* h = x + residual; y[r, c] = h[r, c] / sqrt(mean of h[r]^2 + 1e-6) * weight[c]. */
#include <math.h>
#include <stdint.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t rows = axis[0], cols = axis[1];
    const double *weight = in[2];
#pragma omp parallel for if (rows * cols > 1 << 20)
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[0] + r * cols, *residual = in[1] + r * cols;
        double *y = out[0] + r * cols, squares = 0;
        for (int64_t c = 0; c < cols; c++) {
            y[c] = x[c] + residual[c];
            squares += y[c] * y[c];
        }
        double root = sqrt(squares / (double)cols + 1e-6);
        for (int64_t c = 0; c < cols; c++) y[c] = y[c] / root * weight[c];
    }
}
