/* Textual expansion, bounded in depth, steps and results. */
#include "eval/compile/macros.h"

#include <ctype.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

enum {
    VALUE_MAX_BYTES = 200,
    DEFINITIONS_MAX = 1 << 17,
    DEPTH_MAX = 6,
    FOUND_MAX = 32,
    STEPS_MAX = 1000
};

typedef struct Definition Definition;

struct Definition {
    const void *owner;
    char *value;
    Definition *next;
};

typedef struct {
    char *name;
    Definition *first, *last;
} Macro;

struct Macros {
    void *tree; /* of Macro by name */
    int n;
};

Macros *macros_open(void)
{
    return memory_alloc(sizeof(Macros));
}

static void free_macro(void *node)
{
    Macro *macro = node;
    for (Definition *d = macro->first, *next; d; d = next) {
        next = d->next;
        free(d->value);
        free(d);
    }
    free(macro->name);
    free(macro);
}

void macros_close(Macros *m)
{
    tdestroy(m->tree, free_macro);
    free(m);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const Macro *)a)->name, ((const Macro *)b)->name);
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && isblank((unsigned char)*p)) p++;
    return p;
}

/* The value is a name, a path, or one of these in <> or "", and no number. */
static int names_header(const char *value, size_t len)
{
    if (!len || len >= VALUE_MAX_BYTES || isdigit((unsigned char)*value)) return 0;
    for (size_t i = 0; i < len; i++)
        if (!word_has(value[i]) && !strchr("/.-<>\"", value[i])) return 0;
    return 1;
}

void macros_define(Macros *m, const void *owner, const char *line, size_t len)
{
    static const char lead[] = "define";
    const char *end = line + len, *p = line + sizeof lead - 1;
    if (len < sizeof lead || memcmp(line, lead, sizeof lead - 1) || !isblank((unsigned char)*p))
        return;
    p = skip_blanks(p, end);
    size_t n = word_length(p, end);
    const char *value = skip_blanks(p + n, end);
    while (end > value && isspace((unsigned char)end[-1])) end--;
    if (!n || value == p + n || !names_header(value, (size_t)(end - value)) ||
        m->n == DEFINITIONS_MAX)
        return;
    Macro *macro = memory_alloc(sizeof *macro);
    macro->name = memory_strndup(p, n);
    Macro *kept = *(Macro **)tsearch(macro, &m->tree, compare_names);
    if (kept != macro) free_macro(macro);
    Definition *d = memory_alloc(sizeof *d);
    *d = (Definition){owner, memory_strndup(value, (size_t)(end - value)), NULL};
    if (kept->last)
        kept->last->next = d;
    else
        kept->first = d;
    kept->last = d;
    m->n++;
}

typedef struct {
    const Macros *m;
    MacroVisible *visible;
    MacroFound *found;
    void *context;
    int n_found, n_steps;
} Expansion;

static const Macro *macro_of(const Macros *m, const char *word, size_t len)
{
    char name[VALUE_MAX_BYTES];
    if (len >= sizeof name) return NULL;
    memcpy(name, word, len);
    name[len] = 0;
    Macro probe = {.name = name};
    Macro *const *at = tfind(&probe, &m->tree, compare_names);
    return at ? *at : NULL;
}

static void give(Expansion *e, char *text)
{
    size_t n = strlen(text);
    char open = *text, close = n > 2 ? text[n - 1] : 0;
    if (!((open == '<' && close == '>') || (open == '"' && close == '"')) ||
        e->n_found == FOUND_MAX)
        return;
    text[n - 1] = 0;
    e->n_found++;
    e->found(e->context, text + 1);
}

/* Replace the first word that is a macro by each of its values, and expand each result. Text
 * without macros is a header name. */
static void expand(Expansion *e, const char *text, int depth)
{
    char next[2 * VALUE_MAX_BYTES];
    const char *end = text + strlen(text);
    if (e->n_steps++ == STEPS_MAX) e->n_found = FOUND_MAX;
    if (e->n_found == FOUND_MAX) return;
    for (const char *p = text; p < end && *text != '"'; p++) {
        size_t n = word_length(p, end);
        const Macro *macro = n && depth < DEPTH_MAX ? macro_of(e->m, p, n) : NULL;
        int replaced = 0;
        for (const Definition *d = macro ? macro->first : NULL; d; d = d->next) {
            size_t before = (size_t)(p - text), len = strlen(d->value),
                   after = (size_t)(end - p) - n;
            if (!e->visible(d->owner, e->context) || before + len + after >= sizeof next) continue;
            replaced = 1;
            memcpy(next, text, before);
            memcpy(next + before, d->value, len);
            memcpy(next + before + len, p + n, after + 1);
            expand(e, next, depth + 1);
        }
        if (replaced) return;
        p += n ? n - 1 : 0;
    }
    if (strlen(text) >= sizeof next) return;
    strcpy(next, text);
    give(e, next);
}

void macros_expand(const Macros *m, const char *name, MacroVisible *visible, MacroFound *found,
                   void *context)
{
    Expansion e = {m, visible, found, context, 0, 0};
    expand(&e, name, 0);
}
