/* The engine of the template teacher: choices, and the substitution of texts. */
#include "stages/teacher/template.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "stages/teacher/template_formula.h"
#include "tasks/designs.h"

enum { SOURCE_MAX = 1 << 16, SUBSTITUTION_DEPTH = 8, SENTENCES_MAX = 199 };

static char **find_text(Grammar *g, const char *name, size_t len)
{
    for (int i = 0; i < g->n_texts; i++)
        if (word_is(name, len, g->texts[i].name)) return &g->texts[i].value;
    return NULL;
}

/* Takes ownership of value. */
static void set_text(Grammar *g, const char *name, char *value)
{
    char **slot = find_text(g, name, strlen(name));
    if (slot) {
        free(*slot);
        *slot = value;
        return;
    }
    assert(g->n_texts < GRAMMAR_MAX_TEXTS && strlen(name) < sizeof g->texts[0].name);
    strcpy(g->texts[g->n_texts].name, name);
    g->texts[g->n_texts++].value = value;
}

void grammar_set(Grammar *g, const char *name, const char *text)
{
    set_text(g, name, memory_strdup(text));
}

void grammar_set_int(Grammar *g, const char *name, int value)
{
    set_text(g, name, memory_printf("%d", value));
}

const char *grammar_get(const Grammar *g, const char *name)
{
    char **slot = find_text((Grammar *)g, name, strlen(name));
    assert(slot);
    return *slot;
}

int grammar_is(const Grammar *g, const char *name, const char *value)
{
    return !strcmp(grammar_get(g, name), value);
}

int grammar_int(const Grammar *g, const char *name)
{
    return atoi(grammar_get(g, name));
}

/* Returns the value with this index in "a b:3 c", its length and its weight; NULL past the end. */
static const char *value_at(const char *values, int index, int *weight, size_t *len)
{
    const char *p = values;
    for (int i = 0; *p; i++) {
        *len = strcspn(p, " :");
        const char *rest = p + *len;
        *weight = 1;
        if (*rest == ':') *weight = (int)strtol(rest + 1, (char **)&rest, 10);
        if (i == index) return p;
        p = rest + strspn(rest, " ");
    }
    return NULL;
}

int grammar_choose(Grammar *g, const char *name, const char *values)
{
    int total = 0, slow = 0, weight, index = -1;
    size_t len;
    const char *value;
    for (int i = 0; (value = value_at(values, i, &weight, &len)); i++) {
        total += weight;
        slow += designs_has(g->without, g->task, name, value, len) ? 0 : weight;
    }
    int without = g->without && slow;
    int64_t drawn = (int64_t)random_below(&g->random, (uint64_t)(without ? slow : total));
    do {
        value = value_at(values, ++index, &weight, &len);
        if (!without || !designs_has(g->without, g->task, name, value, len)) drawn -= weight;
    } while (drawn >= 0);
    TemplateKernel *k = g->kernel;
    assert(k->n_choices < TEMPLATE_MAX_CHOICES && len < sizeof k->choices[0].value);
    strcpy(k->choices[k->n_choices].name, name);
    memcpy(k->choices[k->n_choices].value, value, len);
    k->choices[k->n_choices++].value[len] = 0;
    set_text(g, name, memory_strndup(value, len));
    return index;
}

static void substitute(Grammar *g, Buffer *to, const char *text, int depth)
{
    assert(depth < SUBSTITUTION_DEPTH);
    while (*text) {
        size_t plain = strcspn(text, "$");
        buffer_append(to, text, plain);
        text += plain;
        if (!*text) return;
        int closed = *++text == '(';
        size_t n = 0;
        text += closed;
        while (islower((unsigned char)text[n]) || isdigit((unsigned char)text[n]) || text[n] == '_')
            n++;
        char **value = find_text(g, text, n);
        assert(value && "a text that was never set");
        substitute(g, to, *value, depth + 1);
        text += n + (size_t)closed;
    }
}

void grammar_plan(Grammar *g, const char *text)
{
    buffer_puts(&g->plan, "//@ ");
    substitute(g, &g->plan, text, 0);
    buffer_puts(&g->plan, "\n");
}

void grammar_helper(Grammar *g, const char *text)
{
    Buffer b;
    buffer_init(&b, SOURCE_MAX);
    substitute(g, &b, text, 0);
    if (!strstr(g->helpers.data, b.data)) buffer_append(&g->helpers, b.data, b.len);
    buffer_release(&b);
}

void grammar_code(Grammar *g, const char *text)
{
    substitute(g, &g->code, text, 0);
}

/* A sentence that is there already, or for which there is no room, is left out. */
static void sentence(Grammar *g, Buffer *to, const char *text)
{
    Buffer b;
    buffer_init(&b, SOURCE_MAX);
    substitute(g, &b, text, 0);
    if (!strstr(to->data, b.data) && to->len + b.len < SENTENCES_MAX)
        buffer_printf(to, "%s%s", to->len ? " " : "", b.data);
    buffer_release(&b);
}

void grammar_analysis(Grammar *g, const char *text)
{
    sentence(g, &g->analysis, text);
}

void grammar_design(Grammar *g, const char *text)
{
    sentence(g, &g->design, text);
}

/* A task's graph as formulas: all written, or some operators kept. NULL: not so. */
typedef struct {
    Formula *written, *kept;
} Formulas;

static void formulas_release(Formulas *f)
{
    formula_free(f->written);
    formula_free(f->kept);
}

static int has_product(const Formula *f)
{
    for (int i = 0; i < f->n_values; i++)
        if (f->value[i].kind == VALUE_PRODUCT || f->value[i].kind == VALUE_WINDOW) return 1;
    return 0;
}

static int formulas_read(const Task *task, Formulas *f, Error *err)
{
    Error unused;
    *f = (Formulas){0};
    if (formula_read(task, 0, &f->written, err)) f->written = NULL;
    if (f->written && !has_product(f->written)) return 0;
    if (formula_read(task, 1, &f->kept, f->written ? &unused : err)) f->kept = NULL;
    return f->written || f->kept ? 0 : -1;
}

static const Formula *choose_formula(Grammar *g, const Formulas *f)
{
    if (!f->written || !f->kept) return f->written ? f->written : f->kept;
    return grammar_choose(g, "products", "written kept:2") ? f->kept : f->written;
}

static void write_kernel(const Task *task, const Formulas *formulas, TemplateDraw draw,
                         TemplateKernel *out)
{
    *out = (TemplateKernel){0};
    Grammar g = {.kernel = out, .task = task->name, .without = draw.without};
    random_init(&g.random, draw.seed, random_hash(task->name, strlen(task->name)));
    Buffer *buffers[] = {&g.plan, &g.helpers, &g.code, &g.analysis, &g.design};
    for (int i = 0; i < 5; i++) buffer_init(buffers[i], SOURCE_MAX);
    template_formula(&g, choose_formula(&g, formulas));
    buffer_append(&g.plan, g.helpers.data, g.helpers.len);
    buffer_append(&g.plan, g.code.data, g.code.len);
    for (int i = 0; i < 5; i++) assert(!buffers[i]->full);
    out->source = buffer_detach(&g.plan);
    out->analysis = buffer_detach(&g.analysis);
    out->design = buffer_detach(&g.design);
    if (random_uniform(&g.random) < draw.mistake_rate) {
        const char *mistake = template_spoil(&out->source, &g.random);
        if (mistake) {
            out->mistake = 1;
            strncpy(out->mistake_name, mistake, sizeof out->mistake_name - 1);
        }
    }
    for (int i = 0; i < 5; i++) buffer_release(buffers[i]);
    for (int i = 0; i < g.n_texts; i++) free(g.texts[i].value);
}

int template_knows(const Task *task)
{
    Formulas f;
    Error err;
    if (formulas_read(task, &f, &err)) return 0;
    formulas_release(&f);
    return 1;
}

int template_for_task(const Task *task, TemplateDraw draw, TemplateKernel *out, Error *err)
{
    Formulas f = {0};
    Error why;
    *out = (TemplateKernel){0};
    if (formulas_read(task, &f, &why))
        return error_set(err, ERROR_UNKNOWN_NAME,
                         "the template teacher knows no formula of task %s: %s", task->name,
                         why.text);
    write_kernel(task, &f, draw, out);
    formulas_release(&f);
    return 0;
}

void template_release(TemplateKernel *k)
{
    free(k->source);
    free(k->analysis);
    free(k->design);
    *k = (TemplateKernel){0};
}
