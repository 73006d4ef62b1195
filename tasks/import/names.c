/* Chooses names: "conv.weight" becomes conv_weight, dimension 2 of an image height. */
#include "tasks/import/names.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"

/* Words that are no names in a kernel or a plan. */
static const char *const reserved[] = {
    "alignas", "alignof",  "and",      "asm",      "auto",      "bool",      "break",    "case",
    "catch",   "char",     "class",    "const",    "continue",  "default",   "delete",   "do",
    "double",  "else",     "enum",     "explicit", "export",    "extern",    "false",    "float",
    "for",     "friend",   "goto",     "half",     "if",        "in",        "inf",      "inline",
    "int",     "long",     "max",      "min",      "mutable",   "namespace", "nan",      "new",
    "not",     "operator", "or",       "private",  "protected", "public",    "register", "return",
    "short",   "signed",   "sizeof",   "static",   "struct",    "switch",    "template", "this",
    "throw",   "true",     "try",      "typedef",  "typename",  "union",     "unsigned", "using",
    "virtual", "void",     "volatile", "while",    "xor",       "ceil_div",  "log2",     "None",
    "True",    "False",    "_",        NULL};

static int is_reserved(const char *name)
{
    for (int i = 0; reserved[i]; i++)
        if (!strcmp(reserved[i], name)) return 1;
    return 0;
}

void names_choose(json_t *taken, const char *wish, char *out, size_t size)
{
    size_t n = 0;
    if (!word_begins_name(*wish)) out[n++] = 'x';
    for (const char *p = wish; *p && n + 8 < size; p++) out[n++] = word_has(*p) ? *p : '_';
    out[n] = 0;
    if (is_reserved(out) && n + 8 < size) out[n++] = '_', out[n] = 0;
    for (int k = 1; json_object_get(taken, out); k++) snprintf(out + n, size - n, "_%d", k);
    json_object_set_new(taken, out, json_true());
}

static const char *dimension_name(const ProgramInput *x, int d)
{
    static const char *const by_rank[6][5] = {{""},
                                              {"n"},
                                              {"rows", "cols"},
                                              {"batch", "rows", "cols"},
                                              {"batch", "channels", "height", "width"},
                                              {"batch", "channels", "depth", "height", "width"}};
    if (x->kind != INPUT_ARGUMENT) return d ? "inner" : "features";
    return x->rank <= 5 ? by_rank[x->rank][d] : "n";
}

void names_axes(Program *p, json_t *taken)
{
    for (int kind = INPUT_ARGUMENT; kind <= INPUT_CONSTANT; kind++)
        for (int i = 0; i < p->n_inputs; i++) {
            const ProgramInput *x = &p->inputs[i];
            for (int d = 0; d < x->rank && (int)x->kind == kind; d++)
                for (int k = 0; k < x->size[d].n; k++) {
                    const SymNode *n = &x->size[d].node[k];
                    Symbol *s = n->kind == SYM_SYMBOL ? &p->symbols.list[n->a] : NULL;
                    if (s && !s->pinned && !s->same && !*s->axis)
                        names_choose(taken, dimension_name(x, d), s->axis, sizeof s->axis);
                }
        }
    for (int i = 0; i < p->symbols.n; i++)
        if (!p->symbols.list[i].pinned && !p->symbols.list[i].same && !*p->symbols.list[i].axis)
            names_choose(taken, "n", p->symbols.list[i].axis, sizeof p->symbols.list[i].axis);
}
