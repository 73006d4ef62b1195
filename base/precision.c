/* The words of a precision. */
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
