/* One pass over the text; a token becomes a hash. */
#include "stages/crl/hacks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/words.h"

/* Skips blanks, comments and the lines of the plan. */
static const char *skip(const char *p)
{
    for (;;) {
        while (isspace((unsigned char)*p)) p++;
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else {
            return p;
        }
    }
}

static int is_kept(const char *p, size_t n)
{
    static const char *const kept[] = {
        "if",         "else",       "for",          "while",       "return", "float", "float2",
        "float4",     "int",        "unsigned",     "double",      "half",   "const", "static",
        "volatile",   "extern",     "template",     "struct",      "void",   "char",  "threadIdx",
        "blockIdx",   "blockDim",   "gridDim",      "asm",         "do",     "break", "continue",
        "switch",     "case",       "goto",         "x",           "y",      "z",     "__shared__",
        "__global__", "__device__", "__constant__", "__restrict__"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (word_is(p, n, kept[i])) return 1;
    return 0;
}

/* Hashes the token at *p and moves behind it. */
static uint64_t token(const char **p)
{
    const char *s = *p, *end = s;
    if (isdigit((unsigned char)*s)) {
        while (isalnum((unsigned char)*end) || *end == '.') end++;
        *p = end;
        return random_hash("#", 1);
    }
    size_t n = word_name_length(s, NULL);
    if (n) {
        *p = s + n;
        return *skip(s + n) == '(' || is_kept(s, n) ? random_hash(s, n) : random_hash("name", 4);
    }
    *p = s + 1;
    return random_hash(s, 1);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void shingles_make(const char *source, Shingles *out)
{
    uint64_t last[SHINGLE];
    size_t tokens = 0, kept = 0;
    *out = (Shingles){memory_array(strlen(source) + 1, sizeof *out->hash), 0};
    for (const char *p = skip(source); *p; p = skip(p)) {
        last[tokens++ % SHINGLE] = token(&p);
        if (tokens < SHINGLE) continue;
        uint64_t run[SHINGLE];
        for (size_t i = 0; i < SHINGLE; i++) run[i] = last[(tokens + i) % SHINGLE];
        out->hash[out->n++] = random_hash((const char *)run, sizeof run);
    }
    qsort(out->hash, out->n, sizeof *out->hash, ascending);
    for (size_t i = 0; i < out->n; i++)
        if (!i || out->hash[i] != out->hash[i - 1]) out->hash[kept++] = out->hash[i];
    out->n = kept;
}

void shingles_release(Shingles *s)
{
    free(s->hash);
    *s = (Shingles){0};
}

double shingles_similarity(const Shingles *a, const Shingles *b)
{
    size_t i = 0, k = 0, both = 0;
    while (i < a->n && k < b->n) {
        if (a->hash[i] == b->hash[k])
            both++, i++, k++;
        else if (a->hash[i] < b->hash[k])
            i++;
        else
            k++;
    }
    size_t all = a->n + b->n - both;
    return all ? (double)both / (double)all : 0;
}
