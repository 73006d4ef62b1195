/* Textual expansion, bounded in depth, steps and results. */
#include "eval/compile/macros.h"

#include <ctype.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/words.h"

enum {
    VALUE_MAX_BYTES = 200,
    LINE_MAX_BYTES = 400,
    DEFINITIONS_MAX = 1 << 17,
    DEPTH_MAX = 24,
    FOUND_MAX = 32,
    STEPS_MAX = 1000
};

typedef struct Definition Definition;

struct Definition {
    const void *owner;
    char *params; /* "a,b" of NAME(a, b); NULL: the macro takes none */
    char *value;
    Definition *next;
};

typedef struct {
    char *name;
    Definition *first, *last;
} Macro;

struct Macros {
    const Macros *outer;
    void *tree; /* of Macro by name */
    int n;
};

Macros *macros_open(const Macros *outer)
{
    Macros *m = memory_alloc(sizeof *m);
    m->outer = outer;
    return m;
}

static void free_macro(void *node)
{
    Macro *macro = node;
    for (Definition *d = macro->first, *next; d; d = next) {
        next = d->next;
        free(d->params);
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

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && isblank((unsigned char)*p)) p++;
    return p;
}

/* The bracket that closes the one at p; NULL: none does. */
static const char *closing(const char *p, const char *end)
{
    int depth = 0;
    for (; p < end; p++) {
        depth += (*p == '(') - (*p == ')');
        if (!depth) return p;
    }
    return NULL;
}

size_t macros_use_length(const char *p, const char *end)
{
    size_t n = word_name_length(p, end);
    const char *open = skip_blanks(p + n, end),
               *close = n && open < end && *open == '(' ? closing(open, end) : NULL;
    return close ? (size_t)(close + 1 - p) : n;
}

/* Copies a directive without spliced line ends and comments. Returns its length, 0 where it is too long. */
static size_t plain_line(const char *p, const char *end, char out[LINE_MAX_BYTES])
{
    size_t n = 0;
    while (p < end) {
        const char *close = NULL;
        if (end - p > 1 && p[0] == '/' && p[1] == '/') break;
        if (end - p > 3 && p[0] == '/' && p[1] == '*' &&
            !(close = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2)))
            break;
        int splice = *p == '\\' && end - p > 1 && (p[1] == '\n' || p[1] == '\r');
        if (n == LINE_MAX_BYTES) return 0;
        out[n++] = close || splice || isspace((unsigned char)*p) ? ' ' : *p;
        p = close ? close + 2 : p + 1 + splice;
    }
    while (n && out[n - 1] == ' ') n--;
    return n;
}

/* The value has what a name, a path, or one of these in <> or "" has, or builds one, and is no number. */
static int names_header(const char *value, size_t len, int built)
{
    if (!len || len >= VALUE_MAX_BYTES || isdigit((unsigned char)*value)) return 0;
    for (size_t i = 0; i < len; i++)
        if (!word_has(value[i]) && !strchr(built ? "/.-<>\"(), #" : "/.-<>\"(), ", value[i]))
            return 0;
    return 1;
}

static void keep(Macros *m, const char *name, size_t n, Definition *d)
{
    Macro *macro = memory_alloc(sizeof *macro);
    macro->name = memory_strndup(name, n);
    Macro *kept = *(Macro **)tsearch(macro, &m->tree, sort_by_text);
    if (kept != macro) free_macro(macro);
    if (kept->last)
        kept->last->next = d;
    else
        kept->first = d;
    kept->last = d;
    m->n++;
}

void macros_define(Macros *m, const void *owner, const char *line, size_t len)
{
    static const char lead[] = "define";
    char text[LINE_MAX_BYTES];
    if (len < sizeof lead || memcmp(line, lead, sizeof lead - 1) || m->n == DEFINITIONS_MAX) return;
    size_t n_text = plain_line(line, line + len, text);
    const char *end = text + n_text;
    if (n_text < sizeof lead || text[sizeof lead - 1] != ' ') return;
    const char *name = skip_blanks(text + sizeof lead, end);
    size_t n = word_length(name, end);
    const char *after = name + n, *open = after < end && *after == '(' ? after : NULL,
               *close = open ? closing(open, end) : NULL;
    if (!n || after == end || (open ? !close : *after != ' ')) return;
    const char *value = skip_blanks(open ? close + 1 : after, end);
    if (!names_header(value, (size_t)(end - value), open != NULL)) return;
    Definition *d = memory_alloc(sizeof *d);
    d->owner = owner;
    d->params = open ? memory_strndup(open + 1, (size_t)(close - open - 1)) : NULL;
    d->value = memory_strndup(value, (size_t)(end - value));
    keep(m, name, n, d);
}

typedef struct {
    const Macros *m;
    MacroVisible *visible;
    MacroFound *found;
    void *context;
    int n_found, n_steps;
} Expansion;

static const Definition *first_of(const Macros *m, const char *word, size_t len)
{
    char name[VALUE_MAX_BYTES];
    if (len >= sizeof name) return NULL;
    memcpy(name, word, len);
    name[len] = 0;
    Macro probe = {.name = name};
    Macro *const *at = tfind(&probe, &m->tree, sort_by_text);
    return at ? (*at)->first : NULL;
}

/* A word of a text that is a macro, with its arguments in brackets where it has some. */
typedef struct {
    const char *word;
    size_t n;
    const char *open, *close; /* the brackets, or NULL */
} Use;

/* The definition of a use that is visible: the first of all, or the one that follows d. */
static const Definition *next_definition(const Expansion *e, const Use *u, const Macros **m,
                                         const Definition *d)
{
    if (d)
        d = d->next;
    else
        d = first_of(*m = e->m, u->word, u->n);
    for (;; d = d->next) {
        while (!d && (*m)->outer) d = first_of(*m = (*m)->outer, u->word, u->n);
        if (!d || (e->visible(d->owner, e->context) && (!d->params || u->close))) return d;
    }
}

/* Has the macro a definition, and none that takes its arguments as they stand (# and ##)? */
static int is_macro(const Expansion *e, const Use *u, int *as_they_stand)
{
    const Macros *m;
    const Definition *d = next_definition(e, u, &m, NULL);
    int any = d != NULL;
    for (*as_they_stand = 0; d; d = next_definition(e, u, &m, d))
        *as_they_stand |= d->params && strchr(d->value, '#');
    return any;
}

/* Finds what is replaced next: arguments before the macro that takes them. */
static int find_use(const Expansion *e, const char *p, const char *end, Use *u)
{
    for (size_t n; p < end; p += n ? n : 1) {
        int as_they_stand;
        if (!(n = word_length(p, end))) continue;
        const char *open = skip_blanks(p + n, end),
                   *close = open < end && *open == '(' ? closing(open, end) : NULL;
        Use here = {p, n, close ? open : NULL, close};
        if (!is_macro(e, &here, &as_they_stand)) continue;
        if (close && !as_they_stand && find_use(e, open + 1, close, u)) return 1;
        *u = here;
        return 1;
    }
    return 0;
}

/* The argument for the parameter of this name, with its bytes in *n; NULL: it is no parameter. */
static const char *argument(const Definition *d, const Use *u, const char *word, size_t len,
                            size_t *n)
{
    const char *params = d->params, *p_end = params + strlen(params), *a = u->open + 1;
    size_t k;
    for (const char *p = params; (p = word_next(p, p_end, &k)); p += k) {
        const char *end = a;
        for (int depth = 0; end < u->close && (depth || *end != ','); end++)
            depth += (*end == '(') - (*end == ')');
        if (k == len && !memcmp(p, word, k)) {
            a = skip_blanks(a, end);
            while (end > a && isblank((unsigned char)end[-1])) end--;
            *n = (size_t)(end - a);
            return a;
        }
        a = end + (end < u->close);
    }
    return NULL;
}

/* Appends the value of a macro with its arguments in their places. */
static void substitute(const Definition *d, const Use *u, Buffer *out)
{
    const char *p = d->value, *end = p + strlen(p);
    if (!d->params) buffer_append(out, p, (size_t)(end - p));
    for (size_t step; d->params && p < end; p += step) {
        size_t n = 0, n_word;
        int quoted = *p == '#' && p + 1 < end && p[1] != '#';
        const char *word = quoted ? skip_blanks(p + 1, end) : p,
                   *given =
                       (n_word = word_length(word, end)) ? argument(d, u, word, n_word, &n) : NULL;
        step = (size_t)(word - p) + (n_word ? n_word : 1);
        if (given) {
            buffer_printf(out, quoted ? "\"%.*s\"" : "%.*s", (int)n, given);
        } else if (*p == '#') { /* of ##: both sides are joined */
            while (out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
            step = (size_t)(skip_blanks(p + (p + 1 < end && p[1] == '#' ? 2 : 1), end) - p);
        } else {
            buffer_append(out, p, step);
        }
    }
}

static void give(Expansion *e, const char *text)
{
    char header[2 * VALUE_MAX_BYTES];
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ') n--;
    char open = *text, close = n > 2 ? text[n - 1] : 0;
    if (!((open == '<' && close == '>') || (open == '"' && close == '"')) ||
        e->n_found == FOUND_MAX || n >= sizeof header)
        return;
    memcpy(header, text + 1, n - 2);
    header[n - 2] = 0;
    e->n_found++;
    e->found(e->context, header);
}

/* Replace the first use of a macro by each of its values, and expand each result. Text without macros is a
 * header name. */
static void expand(Expansion *e, const char *text, int depth)
{
    const char *end = text + strlen(text);
    const Macros *m;
    Use u;
    if (e->n_steps++ == STEPS_MAX) e->n_found = FOUND_MAX;
    if (e->n_found == FOUND_MAX) return;
    if (*text == '"' || depth == DEPTH_MAX || !find_use(e, text, end, &u)) {
        give(e, text);
        return;
    }
    const Definition *d = NULL;
    while ((d = next_definition(e, &u, &m, d))) {
        Buffer next;
        buffer_init(&next, 2 * VALUE_MAX_BYTES);
        const char *after = d->params ? u.close + 1 : u.word + u.n;
        buffer_append(&next, text, (size_t)(u.word - text));
        substitute(d, &u, &next);
        if (!buffer_append(&next, after, (size_t)(end - after)) && !next.full && next.len)
            expand(e, next.data, depth + 1);
        buffer_release(&next);
    }
}

void macros_expand(const Macros *m, const char *use, MacroVisible *visible, MacroFound *found,
                   void *context)
{
    Expansion e = {m, visible, found, context, 0, 0};
    expand(&e, use, 0);
}
