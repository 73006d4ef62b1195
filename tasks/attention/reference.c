#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t heads = axis[0], seq = axis[1], dim = axis[2];
    double *p = malloc((size_t)seq * sizeof *p);
    if (!p) abort();
    for (int64_t h = 0; h < heads; h++) {
        const double *k = in[1] + h * seq * dim, *v = in[2] + h * seq * dim;
        for (int64_t i = 0; i < seq; i++) {
            const double *q = in[0] + (h * seq + i) * dim;
            double *o = out[0] + (h * seq + i) * dim, max = -INFINITY, sum = 0;
            for (int64_t j = 0; j <= i; j++) {
                p[j] = 0;
                for (int64_t e = 0; e < dim; e++) p[j] += q[e] * k[j * dim + e];
                p[j] /= sqrt((double)dim);
                max = fmax(max, p[j]);
            }
            for (int64_t j = 0; j <= i; j++) sum += p[j] = exp(p[j] - max);
            for (int64_t e = 0; e < dim; e++) o[e] = 0;
            for (int64_t j = 0; j <= i; j++)
                for (int64_t e = 0; e < dim; e++) o[e] += p[j] / sum * v[j * dim + e];
        }
    }
    free(p);
}
