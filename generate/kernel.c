/* The names of a kernel's parameters, its axes, whether it is still what it was traced to be, what makes it
 * too large, and which kernels are one. */
#include "generate/kernel.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* With plain names larger numbers are parameters, too. */
enum { PLAIN_NUMBER = 16 };

/* Words that a kernel's text has, and functions that texts of operators call. */
static int is_reserved(const char *name)
{
    static const char *const words[] = {
        "c",       "v",        "k",           "V",        "row",    "lane",      "shared",
        "first",   "end",      "own",         "step",     "chunk",  "inside",    "strips",
        "fold",    "over",     "a",           "b",        "body",   "min",       "max",
        "abs",     "exp",      "log",         "sqrt",     "rsqrt",  "pow",       "tanh",
        "erf",     "erfc",     "sin",         "cos",      "floor",  "ceil",      "round",
        "trunc",   "fabs",     "norm",        "exp2",     "log2",   "expm1",     "log1p",
        "fmod",    "isnan",    "signbit",     "div",      "int",    "float",     "half",
        "double",  "char",     "short",       "long",     "bool",   "for",       "if",
        "do",      "while",    "return",      "const",    "void",   "and",       "or",
        "not",     "xor",      "i",           "sum",      "rint",   "atan2",     "log10",
        "sinh",    "cosh",     "tan",         "asin",     "acos",   "atan",      "cbrt",
        "hypot",   "lgamma",   "copysign",    "line",     "column", "value",     "batch",
        "product", "left",     "right",       "total",    "second", "tiles",     "blocks",
        "across",  "tile",     "parts",       "factors",  "at",     "Factor",    "Split",
        "u",       "r",        "groups",      "above",    "piece",  "pieces",    "take",
        "join",    "larger",   "smaller",     "exchange", "isinf",  "isfinite",  "memcpy",
        "from",    "start",    "work",        "other",    "plane",  "part_sums", "shape",
        "sums",    "col",      "term",        "count",    "d",      "mapped",    "bring",
        "room",    "place",    "store_words", "asinh",    "acosh",  "atanh",     "erfinv",
        "rounded", "quotient", "inverse",     "root",     "turned", "mish"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i])) return 1;
    size_t len = strlen(name), digits = strspn(name + 1, "0123456789");
    return (strchr("istpyqzmcj", *name) && len > 1 && digits == len - 1) ||
           !strncmp(name, "keep", 4) || !strncmp(name, "rest", 4) || !strncmp(name, "first_", 6) ||
           (!strncmp(name, "to", 2) && len > 2 && strspn(name + 2, "0123456789") == len - 2) ||
           !strncmp(name, "from_", 5) || !strncmp(name, "kernel_", 7) ||
           !strncmp(name, "left_", 5) || !strncmp(name, "right_", 6) || !strncmp(name, "body_", 5);
}

static int is_name(const char *text)
{
    return (isalpha((unsigned char)*text) || *text == '_') && strlen(text) < 20 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
               0;
}

const char *kernel_size(void *kernel, Size s, Error *err)
{
    Kernel *k = kernel;
    char text[SIZE_TEXT];
    static _Thread_local char number[8][24];
    static _Thread_local int next;
    if (size_constant(s) && (!k->nodes->plain_names || llabs(s.at[0]) <= PLAIN_NUMBER)) {
        char *to = number[next++ % 8];
        snprintf(to, sizeof number[0], "%lld", (long long)s.at[0]);
        return to;
    }
    for (int i = 0; i < k->n_sizes; i++)
        if (size_same(k->size[i].size, s)) return k->size[i].name;
    if (k->n_sizes == KERNEL_SIZES) {
        error_set(err, ERROR_UNSUPPORTED, "a kernel of more than %d sizes", KERNEL_SIZES);
        return NULL;
    }
    if (size_text(k->nodes->sizes, s, text, err)) return NULL;
    k->size[k->n_sizes].size = s;
    char *to = k->size[k->n_sizes].name;
    const int taken = is_reserved(text) && !(k->nodes->plain && !strcmp(text, "k"));
    if (!k->nodes->plain_names && is_name(text) && !taken)
        snprintf(to, sizeof k->size[0].name, "%.20s", text);
    else if (k->nodes->plain)
        snprintf(to, sizeof k->size[0].name, k->n_sizes ? "count_%d" : "count", k->n_sizes);
    else
        snprintf(to, sizeof k->size[0].name, "size_%d", k->n_sizes);
    k->n_sizes++;
    return to;
}

const char *kernel_tensor(Kernel *k, int node, int written)
{
    for (int i = 0; i < k->n_tensors; i++)
        if (k->tensor[i].node == node && k->tensor[i].written == written) return k->tensor[i].name;
    if (k->n_tensors == KERNEL_TENSORS) return "too_many_tensors";
    const char *name = k->nodes->node[node].name;
    k->tensor[k->n_tensors].node = node;
    k->tensor[k->n_tensors].written = written;
    if (k->nodes->plain_names)
        snprintf(k->tensor[k->n_tensors].name, sizeof k->tensor[0].name, "memory_%d", k->n_tensors);
    else
        snprintf(k->tensor[k->n_tensors].name, sizeof k->tensor[0].name,
                 is_reserved(name) ? "%s_" : "%s", name);
    return k->tensor[k->n_tensors++].name;
}

void kernel_share(Kernel *k, const Kernel *with)
{
    k->n_sizes = with->n_sizes;
    k->n_tensors = with->n_tensors;
    memcpy(k->size, with->size, sizeof k->size);
    memcpy(k->tensor, with->tensor, sizeof k->tensor);
}

int kernel_largest(const Kernel *k)
{
    int most = 0;
    for (int r = 1; r < k->n_roots; r++)
        if (size_less(node_count(&k->nodes->node[k->root[most].node]),
                      node_count(&k->nodes->node[k->root[r].node])))
            most = r;
    return most;
}

int kernel_is_stale(const Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        const Node *x = &k->nodes->node[k->step[i].node];
        int root = 0, read = k->step[i].arg[0] < 0;
        for (int r = 0; r < k->n_roots; r++) root |= k->step[i].node == k->root[r].node;
        if (x->stored ? !read && !root : x->kind == NODE_VIEW) return 1;
    }
    return 0;
}

int kernel_repeated(const Kernel *k, Error *err)
{
    int last = -1;
    error_set(err, ERROR_UNSUPPORTED, "a kernel of more than %d steps", KERNEL_STEPS);
    for (int i = 0; i < k->n; i++) {
        const int node = k->step[i].node;
        const Node *x = &k->nodes->node[node];
        for (int j = 0; j < i && x->kind == NODE_POINT && !x->stored && node > last; j++)
            if (k->step[j].node == node) last = node;
    }
    return last;
}

/* ---- merging ---- */

static int joins(const Index *at, int a, int b, Size n)
{
    return size_same(at->by[a], size_times(at->by[b], n)) && !((1u << a | 1u << b) & at->through);
}

static int can_merge(const Kernel *k, int a, int b)
{
    Size n = k->axes.size[b];
    if (k->bound[a] >= 0 || k->bound[b] >= 0 || (k->rows >> a & 1) != (k->rows >> b & 1)) return 0;
    for (int i = 0; i < k->n_roots; i++)
        if (!joins(&k->root[i].at, a, b, n)) return 0;
    for (int i = 0; i < k->n; i++) {
        const Step *s = &k->step[i];
        const Node *x = &k->nodes->node[s->node];
        if (x->kind == NODE_FOLD && !x->stored && (s->over >> a & 1) != (s->over >> b & 1))
            return 0;
        if (x->kind == NODE_FOLD && (s->over >> a & 1) != (s->over >> b & 1)) return 0;
        if (((x->stored && s->arg[0] < 0) || x->kind == NODE_COORD || s->place) &&
            !joins(&s->at, a, b, n))
            return 0;
        if (x->parts && s->arg[0] >= 0 && (k->rows >> b & 1)) return 0;
    }
    return 1;
}

static void merge(Kernel *k, int a, int b)
{
    k->axes.size[b] = size_times(k->axes.size[a], k->axes.size[b]);
    k->axes.size[a] = size_number(1);
    for (int i = 0; i < k->n_roots; i++) k->root[i].at.by[a] = size_number(0);
    for (int i = 0; i < k->n; i++) {
        k->step[i].at.by[a] = size_number(0);
        if (k->step[i].axes >> a & 1) k->step[i].axes = (k->step[i].axes & ~(1u << a)) | 1u << b;
        k->step[i].over &= ~(1u << a);
    }
}

void kernel_merge(Kernel *k)
{
    for (int again = 1; again;) {
        again = 0;
        for (int a = 0; a < k->axes.n; a++)
            for (int b = 0; b < k->axes.n; b++) {
                if (a == b || size_is(k->axes.size[a], 1) || size_is(k->axes.size[b], 1)) continue;
                if (!can_merge(k, a, b)) continue;
                merge(k, a, b);
                again = 1;
            }
    }
}

/* ---- what is read beside a result ---- */

KernelPairs kernel_reads_pairs(const Kernel *k, int step)
{
    const Step *s = &k->step[step];
    const Index *at = &s->at, *own = &k->root[0].at;
    const Node *x = &k->nodes->node[s->node];
    int all = 1;
    if (!x->stored || s->arg[0] >= 0 || s->node == k->root[0].node || s->inside ||
        !(x->dtype == DTYPE_F16 || x->dtype == DTYPE_BF16) || *at->text || *own->text ||
        !size_is(at->plus, 0) || !size_is(own->plus, 0))
        return PAIRS_NONE;
    for (int i = 0; i < k->axes.n; i++) {
        if (size_is(k->axes.size[i], 1) || size_same(at->by[i], own->by[i])) continue;
        if (!(k->rows >> i & 1) || !size_is(at->by[i], 0)) return PAIRS_NONE;
        all = 0;
    }
    return all ? PAIRS_OF_ALL : PAIRS_OF_COLUMNS;
}

/* ---- kernels whose texts differ in the names of parameters alone ---- */

enum { MOST_PARAMETERS = 64 };

typedef struct {
    const char *at;
    size_t len;
} Name;

/* The letters of the name that begins here. 0: none does. */
static size_t name_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    return n;
}

/* The names of the kernel's parameters: each is the last one before a comma. */
static int find_parameters(const char *text, Name name[MOST_PARAMETERS])
{
    static const char head[] = "_@(";
    const char *global = strstr(text, "__global__"), *at = strstr(global ? global : text, head);
    Name last = {0};
    int n = 0;
    if (!at) return 0;
    for (at += strlen(head); *at && n < MOST_PARAMETERS;) {
        size_t len = name_length(at);
        if (len) last = (Name){at, len};
        if (last.len && (*at == ',' || *at == ')')) name[n++] = last;
        if (*at == ')') break;
        at += len ? len : 1;
    }
    return n;
}

static int is_member(const char *text, const char *at)
{
    return at > text && (at[-1] == '.' || (at[-1] == '>' && at > text + 1 && at[-2] == '-'));
}

/* Append the text with a number in place of each parameter's name. */
static void put_numbered(const char *text, Buffer *to)
{
    Name name[MOST_PARAMETERS];
    int n = find_parameters(text, name);
    for (const char *at = text; *at;) {
        size_t len = name_length(at);
        int i = len && !is_member(text, at) ? 0 : n;
        while (i < n && (name[i].len != len || memcmp(name[i].at, at, len))) i++;
        if (i < n)
            buffer_printf(to, "$%d", i);
        else
            buffer_append(to, at, len ? len : 1);
        at += len ? len : 1;
    }
}

int kernel_put_source(KernelText *t, const char *text)
{
    Buffer numbered; /* at most three letters for one of the text */
    buffer_init(&numbered, 3 * strlen(text) + 1);
    put_numbered(text, &numbered);
    int at = 0;
    while (at < t->n_seen && strcmp(t->seen[at].text, numbered.data)) at++;
    int number = at < t->n_seen ? t->seen[at].number : t->number;
    if (at == t->n_seen) {
        t->seen = memory_grow(t->seen, (size_t)t->n_seen + 1, sizeof *t->seen);
        t->seen[t->n_seen].text = memory_strdup(numbered.data);
        t->seen[t->n_seen++].number = number;
    }
    buffer_release(&numbered);
    if (number != t->number) return number;
    for (const char *c = text; *c; c++)
        if (*c == '@')
            buffer_printf(t->source, "%d", t->number);
        else
            buffer_append(t->source, c, 1);
    return t->number;
}

int kernel_gathers(const Kernel *k)
{
    for (int a = 0; a < k->axes.n; a++)
        if (k->bound[a] >= 0) return 1;
    return 0;
}
