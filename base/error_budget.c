/* The words of an error budget. */
#include "base/error_budget.h"

#include <stdlib.h>
#include <string.h>

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
