/* Parameters are found in the source by the kernel's name and their position. */
#include "eval/candidate/wide_integers.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"

enum { MAX_DECLARATION = 128 };

/* The text behind the parenthesis of the kernel's declaration; NULL: it is not found. */
static const char *parameters_of(const char *source, const char *end, const char *kernel)
{
    size_t n;
    for (const char *p = word_next(source, end, &n); p; p = word_next(p + n, end, &n)) {
        const char *next = p + n;
        if (!word_is(p, n, kernel)) continue;
        while (next < end && (*next == ' ' || *next == '\n')) next++;
        if (next < end && *next == '(') return next + 1;
    }
    return NULL;
}

/* Parameter number `which` of a list, without the spaces around it: its bytes; 0: there is no such one. */
static size_t parameter_at(const char **list, const char *end, int which)
{
    const char *p = *list;
    for (; which && p < end && *p != ')'; p++) which -= *p == ',';
    if (which) return 0;
    while (p < end && (*p == ' ' || *p == '\n')) p++;
    *list = p;
    while (p < end && *p != ',' && *p != ')') p++;
    while (p > *list && (p[-1] == ' ' || p[-1] == '\n')) p--;
    return (size_t)(p - *list);
}

static int is_narrow(const char *declaration)
{
    static const char *const wide[] = {"long", "int64_t", "uint64_t", "longlong2"};
    static const char *const narrow[] = {"int",     "unsigned", "int32_t", "uint32_t",
                                         "int16_t", "short",    "char",    "float"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (word_in(declaration, wide[i])) return 0;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (word_in(declaration, narrow[i])) return 1;
    return 0;
}

/* The int64 input that a plan's argument names, or -1. */
static int wide_input(const Task *t, PlanText argument)
{
    PlanText name, offset;
    if (!plan_text_pointer(argument, &name, &offset)) return -1;
    for (int i = 0; i < t->n_inputs; i++)
        if (t->inputs[i].dtype == DTYPE_I64 && word_is(name.p, name.len, t->inputs[i].name))
            return i;
    return -1;
}

int wide_integers_narrowed(const Candidate *c, const Task *t, char *declaration, size_t size)
{
    const Plan *p = &c->plan;
    const char *end = c->source + strlen(c->source);
    for (int s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->steps[s];
        if (step->kernel < 0) continue;
        for (int a = 0; a < step->n_args; a++) {
            int input = wide_input(t, step->args[a]);
            const char *list = parameters_of(c->source, end, p->kernels[step->kernel]);
            size_t n = input < 0 || !list ? 0 : parameter_at(&list, end, a);
            if (!n || n >= MAX_DECLARATION) continue;
            snprintf(declaration, size, "%.*s", (int)n, list);
            if (is_narrow(declaration)) return input;
        }
    }
    return -1;
}
