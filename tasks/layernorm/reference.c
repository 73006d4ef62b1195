/* y[r, c] = (x[r, c] - mean[r]) / sqrt(var[r] + 1e-5) * gamma[c] + beta[c]; the variance is biased. */
#include <math.h>
#include <stdint.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t rows = axis[0], cols = axis[1];
    const double *gamma = in[1], *beta = in[2];
#pragma omp parallel for if (rows * cols > 1 << 20)
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[0] + r * cols;
        double *y = out[0] + r * cols, mean = 0, var = 0;
        for (int64_t c = 0; c < cols; c++) mean += x[c];
        mean /= (double)cols;
        for (int64_t c = 0; c < cols; c++) var += (x[c] - mean) * (x[c] - mean);
        var /= (double)cols;
        for (int64_t c = 0; c < cols; c++) y[c] = (x[c] - mean) / sqrt(var + 1e-5) * gamma[c] + beta[c];
    }
}
