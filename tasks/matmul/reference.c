/* c[i, j] = sum over l of a[i, l] * b[l, j]. */
#include <stdint.h>
#include <stdlib.h>

enum { ROWS = 4, COLS = 32 }; /* of one tile of c, held in registers */

/* Some rows of a times a strip of b, [k][COLS]; every element sums over l in ascending order. */
static inline void tile(int rows, const double *a, const double *strip, int64_t k, double sum[ROWS][COLS])
{
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < COLS; s++) sum[r][s] = 0;
    for (int64_t l = 0; l < k; l++)
        for (int r = 0; r < rows; r++)
            for (int s = 0; s < COLS; s++) sum[r][s] += a[r * k + l] * strip[l * COLS + s];
}

/* COLS columns of c, or as many as there are. */
static void columns(int64_t m, int64_t n, int64_t k, const double *a, const double *b, int64_t first, double *c)
{
    int64_t count = n - first < COLS ? n - first : COLS;
    double *strip = calloc((size_t)(k * COLS), sizeof *strip), sum[ROWS][COLS];
    if (!strip) abort();
    for (int64_t l = 0; l < k; l++)
        for (int64_t s = 0; s < count; s++) strip[l * COLS + s] = b[l * n + first + s];
    for (int64_t i = 0; i < m; i += ROWS) {
        int rows = m - i < ROWS ? (int)(m - i) : ROWS;
        if (rows == ROWS)
            tile(ROWS, a + i * k, strip, k, sum);
        else
            tile(rows, a + i * k, strip, k, sum);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t s = 0; s < count; s++) c[(i + r) * n + first + s] = sum[r][s];
    }
    free(strip);
}

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t m = axis[0], n = axis[1], k = axis[2];
#pragma omp parallel for if (m * n * k > 1 << 24)
    for (int64_t j = 0; j < n; j += COLS) columns(m, n, k, in[0], in[1], j, out[0]);
}
