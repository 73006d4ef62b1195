/* Causal attention: o[h, i] = sum over j <= i of softmax(q[h, i] . k[h, j] / sqrt(dim)) * v[h, j]. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* One head. The keys are turned to [dim][seq], so that the innermost loops run over neighbours. */
static void head(int64_t seq, int64_t dim, const double *q, const double *k, const double *v, double *o)
{
    double *turned = malloc((size_t)(seq * dim + seq) * sizeof *turned), *p = turned + seq * dim;
    if (!turned) abort();
    for (int64_t j = 0; j < seq; j++)
        for (int64_t e = 0; e < dim; e++) turned[e * seq + j] = k[j * dim + e];
    for (int64_t i = 0; i < seq; i++) {
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j <= i; j++) p[j] = 0;
        for (int64_t e = 0; e < dim; e++)
            for (int64_t j = 0; j <= i; j++) p[j] += q[i * dim + e] * turned[e * seq + j];
        for (int64_t j = 0; j <= i; j++) max = p[j] > max ? p[j] : max;
        for (int64_t j = 0; j <= i; j++) sum += p[j] = exp((p[j] - max) / sqrt((double)dim));
        for (int64_t e = 0; e < dim; e++) o[i * dim + e] = 0;
        for (int64_t j = 0; j <= i; j++)
            for (int64_t e = 0; e < dim; e++) o[i * dim + e] += p[j] * v[j * dim + e];
        for (int64_t e = 0; e < dim; e++) o[i * dim + e] /= sum;
    }
    free(turned);
}

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t heads = axis[0], seq = axis[1], dim = axis[2], size = seq * dim;
#pragma omp parallel for schedule(dynamic) if (heads * seq * size > 1 << 22)
    for (int64_t h = 0; h < heads; h++) head(seq, dim, in[0] + h * size, in[1] + h * size, in[2] + h * size, out[0] + h * size);
}
