/* The mistakes of beginners, as edits of a correct source. A mistake applies when its text occurs.
 * One of the mistakes that apply is drawn, and one of its places. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/teacher/template_grammar.h"

/* Edits: `from` becomes `to`. A '#' in `from` stands for a number, which is dropped. */
static const struct {
    const char *name, *from, *to;
} mistakes[] = {
    {"missing_bounds_guard", "  if (row >= rows) return;\n", ""},
    {"missing_bounds_guard", "  if (row >= seq) return;\n", ""},
    {"missing_bounds_guard", "if (i < n) ", ""},
    {"missing_bounds_guard", "if (row >= m || col >= n) return;", "if (row >= m) return;"},
    {"missing_bounds_guard", "if (row < m && col < n) c[", "c["},
    {"missing_bounds_guard", "if (row < n && col < m) c[", "c["},
    {"missing_bounds_guard", "if (row < rows && col < cols) ", ""},
    {"missing_bounds_guard", "if (row + j < rows && col < cols) ", ""},
    {"missing_bounds_guard", "if (i < rows * cols) ", ""},
    {"missing_bounds_guard", "  if (i >= batch * cout * volume) return;\n", ""},
    {"missing_sync", "  __syncthreads();\n", ""},
    {"wrong_index", "row * cols + col", "col * cols + row"},
    {"wrong_index", "row * k + p", "p * k + row"},
    {"wrong_index", "p * n + col", "p * k + col"},
    {"wrong_index", "x += row * cols;", "x += row * rows;"},
    {"wrong_index", "y += row * cols;", "y += row;"},
    {"wrong_index", "y[row]", "y[0]"},
    {"wrong_index", "k[j * dim + i]", "k[i * dim + j]"},
    {"wrong_index", "v[j * dim + i]", "v[i * dim + j]"},
    {"wrong_index", "blockIdx.x * blockDim.x +", "blockIdx.x +"},
    {"off_by_one", "i < cols;", "i <= cols;"},
    {"off_by_one", "i < cols;", "i < cols - 1;"},
    {"off_by_one", "p < k;", "p <= k;"},
    {"off_by_one", "if (i < n)", "if (i <= n)"},
    {"off_by_one", "i < n;", "i <= n;"},
    {"off_by_one", "j <= row;", "j < row;"},
    {"floor_division", "ceil_div(n, #)", "n / @"},
    {"floor_division", "ceil_div(m, #)", "m / @"},
    {"floor_division", "ceil_div(rows, #)", "rows / @"},
    {"floor_division", "ceil_div(cols, #)", "cols / @"},
    {"floor_division", "ceil_div(seq, #)", "seq / @"},
    {"uninitialised", "float sum = 0.0f;", "float sum;"},
    {"uninitialised", "top = -1e30f, sum = 0.0f", "top, sum"},
    {"uninitialised", "float sum = 0.0f, var = 0.0f;", "float sum, var;"},
    {"uninitialised", " = {}", ""},
    {"too_much_shared", "__shared__ float part[#];", "__shared__ float part[65536];"},
    {"too_much_shared", "__shared__ float tile[T]", "__shared__ float tile[T * 100]"},
    {"too_much_shared", "__shared__ float as[", "__shared__ float as[1000 * "},
    {"too_many_threads", ", #>>>", ", @00>>>"},
    {"missing_argument", ", cols)\n", ")\n"},
    {"missing_argument", ", n)\n", ")\n"},
    {"missing_argument", ", k)\n", ")\n"},
    {"missing_argument", ", dim)\n", ")\n"},
    {"missing_argument", ", d)\n", ")\n"},
    {"undeclared_name", "int tid = threadIdx.x;\n", "\n"},
    {"undeclared_name", ", tid = threadIdx.x;", ";"},
    {"undeclared_name", ", lane = threadIdx.x % 32;", ";"},
    {"undeclared_name", "int tx = threadIdx.x, ", "int "},
    {"undeclared_name", "float scale = ", "scale = "},
    {"undeclared_name", "  float mean = sum / cols;\n", ""},
    {"missing_semicolon", ";\n", "\n"},
    {"float4_without_tail", "  if (n % 4 == 0) return *", "  return *"},
    {"float4_without_tail", "if (i + # <= n) {", "if (i < n) {"},
    {"float4_without_tail", "if (m % 4 == 0 && i < n * m) {", "if (i < n * m) {"},
    {"wrong_reduction_width", "int s = 16;", "int s = 8;"},
    {"wrong_reduction_width", "int s = blockDim.x / 2;", "int s = blockDim.x / 4;"},
    {"wrong_reduction_width", "lane < blockDim.x / 32 ?", "lane < 1 ?"},
    {"missing_scale", " * rsqrtf((float)dim)", ""},
    {"missing_scale", " * scale", ""},
    {"missing_guard", "  if (i >= n) return;\n", ""},
    {"missing_guard", "  if (i >= rows * cols) return;\n", ""},
    {"missing_guard", "if (i < rows * cols) ", ""},
    {"missing_guard", "if (i + j < cols) ", ""},
    {"missing_guard", "row < m && p < k ? ", "row < m ? "},
    {"missing_guard", "p < k && col < n ? ", "p < k ? "},
    {"swapped_index", "col = i % cols", "col = i / cols"},
    {"swapped_index", "row = i / cols", "row = i % cols"},
    {"swapped_index", "col * k + p", "p * n + col"},
    {"swapped_index", "p * n + col", "col * k + p"},
    {"swapped_index", "[tx][ty + j]", "[ty + j][tx]"},
    {"no_first_value", " = 0.0f;", ";"},
    {"no_first_value", " = -1e30f;", ";"},
    {"wrong_function", "fmaxf(", "fminf("},
    {"wrong_function", "rsqrtf(", "sqrtf("},
    {"wrong_eps", " + 1e-05f", " + 0.1f"},
    {"missing_mean", " /= cols;", " *= 1.0f;"},
};

enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes, MAX_PLACES = 64 };

/* Returns the length of the match of pattern at text, or 0; *number becomes the match of '#'. */
static size_t match(const char *text, const char *pattern, const char **number, size_t *digits)
{
    const char *p = text;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*p++ != *pattern) return 0;
            continue;
        }
        *number = p;
        while (isdigit((unsigned char)*p)) p++;
        if (!(*digits = (size_t)(p - *number))) return 0;
    }
    return (size_t)(p - text);
}

/* Draws a place of the source where mistake m applies; -1 when there is none. */
static long pick_place(const char *source, int m, Random *random)
{
    long places[MAX_PLACES];
    int n = 0;
    const char *number;
    size_t digits;
    for (const char *p = source; *p && n < MAX_PLACES; p++)
        if (match(p, mistakes[m].from, &number, &digits)) places[n++] = p - source;
    return n ? places[random_below(random, (uint64_t)n)] : -1;
}

static char *edit(const char *source, long place, int m)
{
    const char *number = NULL;
    size_t digits = 0, len = match(source + place, mistakes[m].from, &number, &digits);
    Buffer b;
    buffer_init(&b, strlen(source) + 64);
    buffer_append(&b, source, (size_t)place);
    for (const char *to = mistakes[m].to; *to; to++) {
        if (*to == '@')
            buffer_append(&b, number, digits);
        else
            buffer_append(&b, to, 1);
    }
    buffer_puts(&b, source + place + len);
    char *out = buffer_detach(&b);
    buffer_release(&b);
    return out;
}

const char *template_spoil(char **source, Random *random)
{
    const char *names[N_MISTAKES];
    int n_names = 0;
    for (int i = 0; i < N_MISTAKES; i++) {
        Random probe = *random;
        if (pick_place(*source, i, &probe) < 0) continue;
        if (!n_names || strcmp(names[n_names - 1], mistakes[i].name))
            names[n_names++] = mistakes[i].name;
    }
    if (!n_names) return NULL;
    const char *name = names[random_below(random, (uint64_t)n_names)];
    int ways[N_MISTAKES], n_ways = 0;
    for (int i = 0; i < N_MISTAKES; i++) {
        Random probe = *random;
        if (!strcmp(mistakes[i].name, name) && pick_place(*source, i, &probe) >= 0)
            ways[n_ways++] = i;
    }
    int way = ways[random_below(random, (uint64_t)n_ways)];
    char *spoilt = edit(*source, pick_place(*source, way, random), way);
    free(*source);
    *source = spoilt;
    return name;
}
