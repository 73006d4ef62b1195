/* The list of mutations, and their edits. */
#include "lab/mutate/mutations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

int mutation_length(const Mutations *m, int from, int to)
{
    if (to <= from) return 0;
    const Token *last = &m->tokens->at[to - 1];
    return (int)(last->text + last->len - m->tokens->at[from].text);
}

/* The letter of a mutation: the first of its kind at the place is 'a'. */
static char letter(const Mutations *m, const Mutation *one)
{
    char c = 'a';
    for (int i = 0; i < m->n; i++) {
        const Mutation *other = &m->at[i];
        c = (char)(c + (other != one && other->at == one->at && !strcmp(other->kind, one->kind)));
    }
    return c;
}

Mutation *mutation_begin(Mutations *m, const char *kind, int i)
{
    const Token *t = &m->tokens->at[i];
    if (m->n % 64 == 0) m->at = memory_grow(m->at, (size_t)m->n + 64, sizeof *m->at);
    Mutation *one = &m->at[m->n];
    *one = (Mutation){.kind = kind, .line = t->line, .where = t->place};
    one->at = (size_t)(t->text - m->tokens->text);
    snprintf(one->place, sizeof one->place, "%d:%d%c", t->line, t->column, letter(m, one));
    m->n++;
    return one;
}

void mutation_edit(Mutations *m, int from, int to, const char *fmt, ...)
{
    Mutation *one = &m->at[m->n - 1];
    Edit *e = &one->edits[one->n_edits++];
    va_list ap;
    va_start(ap, fmt);
    e->text = memory_vprintf(fmt, ap);
    va_end(ap);
    e->at = (size_t)(m->tokens->at[from].text - m->tokens->text);
    e->len = (size_t)mutation_length(m, from, to);
}

void mutation_add(Mutations *m, const char *kind, int from, int to, const char *text)
{
    mutation_begin(m, kind, from);
    mutation_edit(m, from, to, "%s", text);
}

static void apply_rules(Mutations *m, const MutationRow *rules, int n)
{
    for (int i = 0; i < m->tokens->n; i++)
        for (int r = 0; r < n; r++)
            if (rules[r].places & m->tokens->at[i].place) rules[r].find(m, i);
}

void mutations_find(const Tokens *t, int large, Mutations *out)
{
    *out = (Mutations){.tokens = t, .large = large};
    apply_rules(out, mutation_code_rules, mutation_n_code_rules);
    apply_rules(out, mutation_plan_rules, mutation_n_plan_rules);
}

void mutations_release(Mutations *m)
{
    for (int i = 0; i < m->n; i++)
        for (int e = 0; e < m->at[i].n_edits; e++) free(m->at[i].edits[e].text);
    free(m->at);
    memset(m, 0, sizeof *m);
}

char *mutation_apply(const Mutations *m, const Mutation *one)
{
    Buffer out;
    const char *text = m->tokens->text;
    size_t at = 0, len = strlen(text);
    buffer_init(&out, len + ((size_t)1 << 20));
    for (int i = 0; i < one->n_edits; i++) {
        const Edit *e = &one->edits[i];
        buffer_append(&out, text + at, e->at - at);
        buffer_puts(&out, e->text);
        at = e->at + e->len;
    }
    buffer_append(&out, text + at, len - at);
    return buffer_detach(&out);
}
