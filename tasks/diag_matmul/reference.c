/* c[i, j] = d[i] * b[i, j]. */
#include <stdint.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t n = axis[0], m = axis[1];
    const double *d = in[0], *b = in[1];
#pragma omp parallel for if (n * m > 1 << 20)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) out[0][i * m + j] = d[i] * b[i * m + j];
}
