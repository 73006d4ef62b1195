/* Looks for the marks of the usual techniques. Comments other than the plan are skipped, so that
 * the description follows from the code and not from what a comment claims. */
#include "stages/data/describe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "base/memory.h"
#include "base/words.h"

typedef struct {
    char *code; /* without comments, NUL-terminated */
    char *plan; /* the "//@" lines, one after another */
} Split;

static Split split_source(const char *source, size_t len)
{
    Split s = {memory_alloc(len + 1), memory_alloc(len + 2)};
    size_t n_code = 0, n_plan = 0;
    for (size_t i = 0; i < len;) {
        const char *end = memchr(source + i, '\n', len - i);
        size_t line_end = end ? (size_t)(end - source) + 1 : len;
        if (len - i >= 3 && !memcmp(source + i, "//@", 3)) {
            memcpy(s.plan + n_plan, source + i, line_end - i);
            n_plan += line_end - i;
            i = line_end;
        } else if (len - i >= 2 && !memcmp(source + i, "//", 2)) {
            i = line_end;
        } else if (len - i >= 2 && !memcmp(source + i, "/*", 2)) {
            const char *close = memmem(source + i + 2, len - i - 2, "*/", 2);
            i = close ? (size_t)(close - source) + 2 : len;
        } else {
            s.code[n_code++] = source[i] ? source[i] : ' ';
            i++;
        }
    }
    for (size_t i = 0; i < n_plan; i++)
        if (!s.plan[i]) s.plan[i] = ' ';
    return s;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

/* Returns the second launch parameter: it follows the first comma outside parentheses. */
static const char *second_parameter(const char *p)
{
    int depth = 0;
    for (; *p && *p != '\n' && (depth || strncmp(p, ">>>", 3)); p++) {
        if (*p == '(') depth++;
        if (*p == ')') depth--;
        if (*p == ',' && !depth) return p + 1;
    }
    return NULL;
}

static int no_names(void *ctx, const char *name, size_t len, int64_t *value)
{
    (void)ctx, (void)name, (void)len, (void)value;
    return -1;
}

/* Returns the threads of a block in the first launch: the product of its expressions; 0 when they
 * name an axis. */
static long plan_threads(const char *plan)
{
    const char *launch = strstr(plan, "<<<"), *p = launch ? second_parameter(launch + 3) : NULL;
    if (!p) return 0;
    p += strspn(p, " ");
    int braces = !strncmp(p, "dim3(", 5), depth = 0;
    if (braces) p += 5;
    int64_t product = 1, value;
    const char *start = p;
    for (; *p && *p != '\n'; p++) {
        if (*p == '(') depth++;
        int last = !depth && (braces ? *p == ')' : !strncmp(p, ">>>", 3));
        if (last || (*p == ',' && !depth)) {
            if (expr_eval(start, (size_t)(p - start), no_names, NULL, &value, NULL) || value < 1 ||
                value > 1024)
                return 0;
            product *= value;
            start = p + 1;
            if (last || !braces) return product;
        }
        if (*p == ')') depth--;
    }
    return 0;
}

/* Returns the arguments of the first template kernel in the plan, "<64, 64, 16, 4>"; *len 0:
 * none. */
static const char *plan_template(const char *plan, size_t *len)
{
    const char *p = strstr(plan, "><<<"), *start = p;
    while (start && start > plan && *start != '<' && *start != '\n') start--;
    *len = start && *start == '<' ? (size_t)(p - start) + 1 : 0;
    return *len <= 40 ? start : (*len = 0, NULL);
}

/* Returns the number after the first `mark` in code if it is in 1..max and `close` follows; else
 * 0. */
static long number_after(const char *code, const char *mark, const char *close, long max)
{
    const char *p = strstr(code, mark);
    if (!p || !isdigit((unsigned char)p[strlen(mark)])) return 0;
    char *end;
    long n = strtol(p + strlen(mark), &end, 10);
    return n >= 1 && n <= max && !strncmp(end, close, strlen(close)) ? n : 0;
}

/* Returns the size of the first local array, "float v[8]" or "float sum[4][4]"; 0 without one. */
static long register_array(const char *code)
{
    for (const char *p = code; (p = strstr(p, "  float ")); p += 8) {
        const char *q = p + 8 + word_length(p + 8, NULL);
        long n = *q == '[' ? number_after(q, "[", "]", 256) : 0;
        const char *second = n ? strstr(q, "]") + 1 : q;
        long m = n && *second == '[' ? number_after(second, "[", "]", 256) : 1;
        if (n && m) return n * m;
    }
    return 0;
}

/* Returns the elements of a vector in the generator's kernels, whose body is called as "body_1<4>(x, y)"; 0
 * where no kernel has vectors. */
static long vector_width(const char *code)
{
    for (const char *p = code; (p = strstr(p, " body_")); p++) {
        const char *name = p + 1, *end = name + word_length(name, NULL);
        if (*end == '<') return number_after(end, "<", ">(", 32);
    }
    return 0;
}

int describe_source(const char *source, size_t len, Buffer *out)
{
    Split s = split_source(source, len);
    Buffer b;
    buffer_init(&b, DESCRIBE_MAX);
    int launches = count(s.plan, "//@ launch");
    long threads = plan_threads(s.plan), kept = register_array(s.code),
         steps = number_after(s.code, "j < ", "; j++", 16);
    size_t sizes_len;
    const char *sizes = plan_template(s.plan, &sizes_len);
    const long width = vector_width(s.code);
    buffer_printf(&b, "%d launch%s", launches, launches == 1 ? "" : "es");
    if (threads) buffer_printf(&b, ", %ld threads", threads);
    if (sizes_len) buffer_printf(&b, ", template %.*s", (int)sizes_len, sizes);
    if (width) buffer_printf(&b, ", vectors of %ld", width);
    static const struct {
        const char *mark, *phrase;
        int in_plan;
    } marks[] = {
        {"//@ buffer", "buffers", 1},
        {"//@ for", "repeated launches", 1},
        {"float4 *)", "float4", 0},
        {"float2 *)", "float2", 0},
        {"extern __shared__", "dynamic shared memory", 0},
        {" tile[", "shared tile", 0},
        {" as[", "shared tiles", 0},
        {"__shfl", "warp shuffle", 0},
        {"atomicAdd", "atomics", 0},
        {"gridDim.x", "grid-stride loop", 0},
        {"#pragma unroll", "unrolled", 0},
        {"__expf", "fast exp", 0},
        {"lane = threadIdx.x, ", "a block per row", 0},
        {"lane = threadIdx.x % 32, ", "a warp per row", 0},
        {" tree_", "tree in shared memory", 0},
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(marks[i].in_plan ? s.plan : s.code, marks[i].mark))
            buffer_printf(&b, ", %s", marks[i].phrase);
    if (steps && !kept) buffer_printf(&b, ", %ld steps", steps);
    if (kept) buffer_printf(&b, ", %ld values in registers", kept);
    int barriers = count(s.code, "__syncthreads");
    if (barriers) buffer_printf(&b, ", %d barrier%s", barriers, barriers == 1 ? "" : "s");
    int failed = buffer_append(out, b.data, b.len);
    buffer_release(&b);
    free(s.code);
    free(s.plan);
    return failed;
}
