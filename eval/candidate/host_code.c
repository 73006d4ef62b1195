/* One pass over the source that steps over comments, strings and characters. */
#include "eval/candidate/host_code.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"

/* A word that begins with one of these counts; those that end in '(' need a call. */
static const char *const marks[] = {
    "<<<",         "main(",           "cudaMalloc",   "cudaMemcpy", "cudaFree",
    "cudaLaunch",  "cudaDeviceSynch", "cudaStream",   "cudaEvent",  "cudaGraph",
    "torch::",     "PYBIND11_MODULE", "at::Tensor",   "TORCH_",     "load_inline",
    "std::vector", "std::cout",       "cublasCreate", "cudnnCreate"};

/* Returns the length of the comment, string or character at p, or 0. */
static size_t skipped(const char *p, size_t n)
{
    if (n >= 2 && p[0] == '/' && (p[1] == '/' || p[1] == '*')) {
        const char *close = p[1] == '/' ? memchr(p, '\n', n) : memmem(p + 2, n - 2, "*/", 2);
        return close ? (size_t)(close - p) + (p[1] == '/' ? 0 : 2) : n;
    }
    if (*p != '"' && *p != '\'') return 0;
    size_t i = 1;
    while (i < n && p[i] != *p && p[i] != '\n') i += p[i] == '\\' && i + 1 < n ? 2 : 1;
    return i < n ? i + 1 : n;
}

static const char *mark_at(const char *p, size_t n)
{
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (n >= strlen(marks[k]) && !memcmp(p, marks[k], strlen(marks[k]))) return marks[k];
    return NULL;
}

int host_code(const char *source, size_t len, char *out, size_t size)
{
    int line = 1;
    unsigned char begins[256] = {0}; /* by the first character: a mark begins with it */
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) begins[(unsigned char)*marks[k]] = 1;
    for (size_t i = 0, skip; i < len; i += skip) {
        skip = skipped(source + i, len - i);
        int may = !skip && begins[(unsigned char)source[i]];
        const char *mark = may ? mark_at(source + i, len - i) : NULL;
        if (mark && word_has(*mark) && i && word_has(source[i - 1])) mark = NULL;
        if (mark) {
            size_t n = strcspn(mark, "(");
            if (word_has(*mark)) n += word_length(source + i + n, source + len);
            snprintf(out, size, "%.*s", (int)n, source + i);
            return line;
        }
        if (!skip) skip = 1;
        for (size_t k = 0; k < skip; k++) line += source[i + k] == '\n';
    }
    return 0;
}
