#include <stdint.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t m = axis[0], n = axis[1], k = axis[2];
    const double *a = in[0], *b = in[1];
    for (int64_t i = 0; i < m; i++) {
        double *c = out[0] + i * n;
        for (int64_t j = 0; j < n; j++) c[j] = 0;
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++) c[j] += a[i * k + l] * b[l * n + j];
    }
}
