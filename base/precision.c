/* The words of a precision and of an allowed error. */
#include "base/precision.h"

#include <stdlib.h>
#include <string.h>

const Precision precision_default = {MATMUL_HIGHEST, 1};
const char *const precision_matmul_names[MATMUL_PRECISIONS] = {"highest", "high", "medium"};

unsigned precision_tf32(const Precision *p)
{
    return (p->matmul == MATMUL_HIGHEST ? 0 : TF32_CUBLAS) | (p->cudnn_tf32 ? TF32_CUDNN : 0);
}

int precision_named(const char *word, Precision *out, Error *err)
{
    *out = precision_default;
    if (!strcmp(word, "default")) return 0;
    for (int i = 0; i < MATMUL_PRECISIONS; i++)
        if (!strcmp(word, precision_matmul_names[i])) {
            *out = (Precision){(MatmulPrecision)i, i != MATMUL_HIGHEST};
            return 0;
        }
    return error_set(err, ERROR_INVALID,
                     "expected default, highest, high or medium, found \"%.40s\"", word);
}

int precision_of_run(Precision *out, Error *err)
{
    const char *word = getenv("PRECISION");
    if (!word || !*word || !strcmp(word, "default")) return 0;
    return precision_named(word, out, err) ? error_prefix(err, "PRECISION") : 1;
}

/* ---- the error that is allowed ---- */

static const double most_times = 1e6, most_absolute = 1e6;

int budget_is_set(const ErrorBudget *b)
{
    return b->times > 0 || b->absolute > 0;
}

int budget_named(const char *word, ErrorBudget *out, Error *err)
{
    char *end;
    *out = (ErrorBudget){0, 0};
    if (!*word || !strcmp(word, "default")) return 0;
    double v = strtod(word, &end);
    int is_times = end != word && !strcmp(end, "x");
    if (end == word || (*end && !is_times) || !(v > 0) ||
        v > (is_times ? most_times : most_absolute))
        return error_set(err, ERROR_INVALID,
                         "expected default, so many times eager's error as 2x, or an absolute "
                         "error as 1e-3, found \"%.40s\"",
                         word);
    *(is_times ? &out->times : &out->absolute) = v;
    return 0;
}

int budget_of_run(ErrorBudget *out, Error *err)
{
    const char *word = getenv("TOLERANCE");
    if (!word || !*word || !strcmp(word, "default")) return 0;
    return budget_named(word, out, err) ? error_prefix(err, "TOLERANCE") : 1;
}
