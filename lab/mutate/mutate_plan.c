/* The rules for the `//@` lines of a plan: grids, blocks, buffers, arguments, loops, op lines. */
#include "lab/mutate/mutations.h"

#define TEXT(m, i) ((m)->tokens->at[i].text)

/* Token i is the first of its directive, whose word is `name`. */
static int is_directive(const Tokens *t, int i, const char *name)
{
    return token_is(t, i, name) && (!i || t->at[i - 1].line != t->at[i].line);
}

static int line_end(const Tokens *t, int i)
{
    int at = i;
    while (at < t->n && t->at[at].line == t->at[i].line) at++;
    return at;
}

static int find_in_line(const Tokens *t, int i, const char *sign)
{
    int end = line_end(t, i);
    while (i < end && !token_is(t, i, sign)) i++;
    return i < end ? i : -1;
}

static void resize(Mutations *m, const char *kind, int from, int to, const char *format_of)
{
    int n = mutation_length(m, from, to);
    mutation_begin(m, kind, from);
    mutation_edit(m, from, to, "max(1, (%.*s)%s)", n, TEXT(m, from), format_of);
}

/* The grid has one block less, half of them, or floors where it rounds up. */
static void grids(Mutations *m, int i)
{
    const Tokens *t = m->tokens;
    if (!is_directive(t, i, "launch")) return;
    int open = find_in_line(t, i, "<<<"), at = open + 1, end;
    if (open < 0) return;
    int several = token_is(t, at, "dim3") && token_is(t, at + 1, "(");
    if (several) at += 2;
    for (int stop = several ? t->at[at - 1].mate : at + 1; at < stop || !several; at = end + 1) {
        end = token_operand_end(t, at, " , ");
        if (end - at > 1 || t->at[at].kind == TOKEN_NAME) {
            resize(m, "grid", at, end, " - 1");
            resize(m, "grid", at, end, " / 2");
            resize(m, "grid", at, end, " * 3 / 4");
        }
        if (!several || end == at) break;
    }
    for (int k = open; k < t->n && !token_is(t, k, ">>>"); k++)
        if (token_is(t, k, "ceil_div") && token_is(t, k + 1, "(")) {
            int close = t->at[k + 1].mate, comma = token_operand_end(t, k + 2, " , ");
            mutation_begin(m, "grid", k);
            mutation_edit(m, k, close + 1, "max(1, (%.*s) / (%.*s))",
                          mutation_length(m, k + 2, comma), TEXT(m, k + 2),
                          mutation_length(m, comma + 1, close), TEXT(m, comma + 1));
        }
}

/* Arguments that are no names alone, or are names of axes, are off by one; two neighbours change places. */
static void arguments(Mutations *m, int i)
{
    const Tokens *t = m->tokens;
    if (!is_directive(t, i, "launch")) return;
    int close = find_in_line(t, i, ">>>");
    if (close < 0 || !token_is(t, close + 1, "(")) return;
    int end = t->at[close + 1].mate;
    for (int at = close + 2, stop, before = -1; at < end; before = at, at = stop + 1) {
        stop = token_operand_end(t, at, " , ");
        mutation_begin(m, "argument", at);
        mutation_edit(m, at, stop, "%.*s + 1", mutation_length(m, at, stop), TEXT(m, at));
        mutation_begin(m, "argument", at);
        mutation_edit(m, at, stop, "%.*s - 1", mutation_length(m, at, stop), TEXT(m, at));
        if (before < 0) continue;
        mutation_begin(m, "argument", before);
        mutation_edit(m, before, stop, "%.*s, %.*s", mutation_length(m, at, stop), TEXT(m, at),
                      mutation_length(m, before, at - 1), TEXT(m, before));
    }
}

static void buffers(Mutations *m, int i)
{
    const Tokens *t = m->tokens;
    if (!is_directive(t, i, "buffer")) return;
    int open = find_in_line(t, i, "[");
    if (open >= 0) resize(m, "buffer", open + 1, t->at[open].mate, " / 2");
}

/* A launch fewer: the last one of a loop, or the whole line. */
static void launches(Mutations *m, int i)
{
    const Tokens *t = m->tokens;
    if (is_directive(t, i, "for")) {
        int to = find_in_line(t, i, "..") + 1, end = line_end(t, i);
        if (to < 1 || to >= end) return;
        mutation_begin(m, "launches", to);
        mutation_edit(m, to, end, "%.*s - 1", mutation_length(m, to, end), TEXT(m, to));
    } else if (is_directive(t, i, "launch") || is_directive(t, i, "op")) {
        mutation_add(m, "launches", i, line_end(t, i), "buffer float unused_[1]");
    }
}

/* The comma behind the grid of a launch. */
static int grid_end(const Tokens *t, int open)
{
    return token_operand_end(t, open + 1, " , ");
}

/* The numbers of an op line, and of grids and blocks. Half of a divisor of the grid only makes it larger. */
static void plan_numbers(Mutations *m, int i)
{
    const Tokens *t = m->tokens;
    if (t->at[i].kind != TOKEN_NUMBER) return;
    int first = token_statement(t, i), op = is_directive(t, first, "op"),
        open = find_in_line(t, first, "<<<"), close = find_in_line(t, first, ">>>");
    if (!op && (i < open || i > close)) return;
    const char *kind = op ? "op" : "block";
    int n = (int)t->at[i].len;
    mutation_begin(m, kind, i);
    mutation_edit(m, i, i + 1, !op ? "(%.*s * 2)" : n == 1 ? "1%.*s" : "%.*s1", n, TEXT(m, i));
    if (op || i < grid_end(t, open)) return;
    mutation_begin(m, kind, i);
    mutation_edit(m, i, i + 1, "max(1, %.*s / 2)", n, TEXT(m, i));
}

const MutationRow mutation_plan_rules[] = {
    {IN_PLAN, grids},    {IN_PLAN, arguments},    {IN_PLAN, buffers},
    {IN_PLAN, launches}, {IN_PLAN, plan_numbers},
};
const int mutation_n_plan_rules = sizeof mutation_plan_rules / sizeof *mutation_plan_rules;
