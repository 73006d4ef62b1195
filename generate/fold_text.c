/* Folds as text. A sum is a number of each thread. A spread and an exponential sum are structs, in which
 * their pair, the mean or the largest element, is known too. */
#include "generate/fold_text.h"

#include <stdio.h>
#include <string.h>

static const char *const combine[] = {"a + b", "larger(a, b)", "smaller(a, b)", "a * b"};
static const char *const start[] = {"0", "-INFINITY", "INFINITY", "1"};

static Fold fold_of(const Writer *w, int step)
{
    return node_of(w, step)->fold;
}

static int is_struct(Fold f)
{
    return f == FOLD_MEAN || f == FOLD_SPREAD || f == FOLD_EXPSUM;
}

int fold_state(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    Fold f = fold_of(w, step), by = f == FOLD_MEAN ? FOLD_SPREAD : FOLD_EXPSUM;
    for (int i = 0; i < w->k->n && (f == FOLD_MEAN || f == FOLD_MAX); i++) {
        const Step *o = &w->k->step[i];
        if (is_fold(w, i) && fold_of(w, i) == by && o->arg[0] == s->arg[0] && o->over == s->over)
            return i;
    }
    return step;
}

int fold_words(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && is_struct(fold_of(w, i))) return 3;
    return 1;
}

static const char *struct_type(const Writer *w, int step)
{
    int wide = !strcmp(writer_type(w, step), "double");
    if (fold_of(w, step) == FOLD_EXPSUM) return wide ? "Peak<double>" : "Peak<float>";
    return wide ? "Moments<double>" : "Moments<float>";
}

void fold_put_element(Writer *w, int step, int batch, const char *indent)
{
    if (fold_state(w, step) != step) return;
    if (is_struct(fold_of(w, step))) {
        buffer_printf(&w->body, "%sz%d[%sv] = ", indent, step, batch ? "u * V + " : "");
        writer_value(w, w->k->step[step].arg[0], writer_type(w, step));
        buffer_puts(&w->body, ";\n");
        return;
    }
    buffer_printf(&w->body, "%ss%d = ", indent, step);
    for (const char *text = combine[fold_of(w, step)]; *text; text++)
        if (!strncmp(text, "a ", 2) || !strncmp(text, "a,", 2))
            buffer_printf(&w->body, "s%d", step);
        else if (!strcmp(text, "b") || !strcmp(text, "b)"))
            writer_value(w, w->k->step[step].arg[0], writer_type(w, step));
        else
            buffer_append(&w->body, text, 1);
    buffer_puts(&w->body, ";\n");
}

/* 1: the fold takes several elements of the pass at once. */
static int takes_many(const Writer *w, const Pass *p, int step)
{
    return p->level && writer_takes_part(w, p, step) && is_struct(fold_of(w, step)) &&
           fold_state(w, step) == step;
}

void fold_put_values(Writer *w, const Pass *p, int n, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (takes_many(w, p, i))
            buffer_printf(&w->body, "%s%s z%d[%d * V];\n", indent, writer_type(w, i), i, n);
}

void fold_put_taken(Writer *w, const Pass *p, int n, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (takes_many(w, p, i))
            buffer_printf(&w->body, "%ss%d = take<%d * V>(s%d, z%d);\n", indent, i, n, i, i);
}

static void put_start(Writer *w, int step)
{
    if (fold_state(w, step) != step) return;
    if (fold_of(w, step) != FOLD_SUM && fold_of(w, step) != FOLD_PROD) writer_help(w, HELP_ORDER);
    if (is_struct(fold_of(w, step))) {
        writer_help(w, fold_of(w, step) == FOLD_EXPSUM ? HELP_PEAK : HELP_MOMENTS);
        buffer_printf(&w->body, "    %s s%d;\n", struct_type(w, step), step);
        return;
    }
    const char *from = start[fold_of(w, step)];
    if (!strcmp(writer_type(w, step), "long long"))
        from = fold_of(w, step) == FOLD_MAX   ? "-9223372036854775807LL - 1"
               : fold_of(w, step) == FOLD_MIN ? "9223372036854775807LL"
                                              : from;
    buffer_printf(&w->body, "    %s s%d = %s;\n", writer_type(w, step), step, from);
}

/* The fold over the threads' states, or its member of another fold's. */
static void put_result(Writer *w, int step)
{
    static const char *const member[] = {
        [FOLD_MAX] = "most", [FOLD_MEAN] = "mean", [FOLD_SPREAD] = "spread", [FOLD_EXPSUM] = "sum"};
    int of = fold_state(w, step), many = is_struct(fold_of(w, of));
    const char *type = many ? struct_type(w, of) : writer_type(w, step);
    writer_help(w, HELP_EXCHANGE);
    writer_help(w, w->strip >= 0 ? HELP_FOLD_COLUMNS : HELP_FOLD);
    if (of == step)
        buffer_printf(
            &w->body,
            "    const %s %c%d = %s<%d>(s%d, [](%s a, %s b) { return %s; }, (%s *)shared);\n", type,
            many ? 'm' : 't', step, w->strip >= 0 ? "fold_columns" : "fold", w->lanes, step, type,
            type, many ? "join(a, b)" : combine[fold_of(w, step)], type);
    if (many)
        buffer_printf(&w->body, "    const %s t%d = m%d.%s;\n", writer_type(w, step), step, of,
                      member[fold_of(w, step)]);
}

void fold_put_level(Writer *w, int level)
{
    for (int i = 0; i < w->k->n; i++) {
        Pass p = {level, w->k->step[i].over};
        if (!is_fold(w, i) || w->k->step[i].level != level || w->defined[i]) continue;
        for (int j = i; j < w->k->n; j++)
            if (writer_takes_part(w, &p, j)) put_start(w, j);
        writer_loop(w, &p);
        for (int own = 1; own >= 0; own--)
            for (int j = i; j < w->k->n; j++) {
                if (!writer_takes_part(w, &p, j) || (fold_state(w, j) == j) != own) continue;
                put_result(w, j);
                w->defined[j] = 1;
            }
    }
}
