/* The text of plain kernels: a thread takes an element, or V neighbours; a thread, a warp or a block folds a
 * row. A spread and an exponential sum are folds of two passes; or one pass scales the sum again. */
#include "generate/draw/plain_text.h"

#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "generate/fold_text.h"

EMBED(plain_helpers, "generate/draw/plain_text.cu")

/* ---- pieces ---- */

unsigned plain_loops(const Kernel *k, unsigned mask, int *n)
{
    *n = 0;
    for (int i = 0; i < INDEX_AXES; i++) {
        if (i >= k->axes.n || size_is(k->axes.size[i], 1) || k->bound[i] >= 0) mask &= ~(1u << i);
        *n += mask >> i & 1;
    }
    return mask;
}

void plain_count(Plainer *x, unsigned mask, char out[PLAIN_TEXT])
{
    int n, len = 0;
    const Kernel *k = x->w.k;
    mask = plain_loops(k, mask, &n);
    snprintf(out, PLAIN_TEXT, "1");
    for (int i = 0; i < k->axes.n && len < PLAIN_TEXT - 40; i++)
        if (mask >> i & 1)
            len += snprintf(out + len, (size_t)(PLAIN_TEXT - len), "%s%s", len ? " * " : "",
                            writer_size(&x->w, k->axes.size[i]));
}

/* The axis of a mask along which neighbouring threads walk. */
static int fastest(const Writer *w, unsigned mask)
{
    if (w->last >= 0 && mask >> w->last & 1) return w->last;
    for (int i = w->k->axes.n - 1; i >= 0; i--)
        if (mask >> i & 1) return i;
    return -1;
}

static const char *count_type(const Plainer *x)
{
    return x->w.wide ? "long long" : "int";
}

void plain_axes(Plainer *x, unsigned mask, const char *flat, const char *indent)
{
    char over[PLAIN_TEXT];
    int n, at;
    mask = plain_loops(x->w.k, mask, &n);
    if (!n || (n == 1 && !strcmp(flat, x->w.k->axes.name[fastest(&x->w, mask)]))) return;
    snprintf(over, sizeof over, "%s", flat);
    for (int i = 0; (at = fastest(&x->w, mask)) >= 0; i++) {
        mask &= ~(1u << at);
        const char *size = writer_size(&x->w, x->w.k->axes.size[at]);
        const size_t len = strlen(over);
        if (!i) buffer_printf(&x->w.body, "%s%s ", indent, count_type(x));
        buffer_printf(&x->w.body, "%s%s = %s", i ? ", " : "", x->w.k->axes.name[at], over);
        if (mask) buffer_printf(&x->w.body, " %% %s", size);
        snprintf(over + len, sizeof over - len, " / %s", size);
    }
    buffer_puts(&x->w.body, ";\n");
}

/* The name of a mask's flat number: the axis itself where there is one. */
static const char *flat_name(const Plainer *x, unsigned mask, const char *other)
{
    int n;
    mask = plain_loops(x->w.k, mask, &n);
    return n == 1 ? x->w.k->axes.name[fastest(&x->w, mask)] : other;
}

const char *plain_below(Plainer *x)
{
    return plain_slips(plain_of(x), SLIP_BOUND) ? "<=" : "<";
}

/* The number of a block's first thread, and of all threads, as expressions. */
static const char *before_block(const Plainer *x)
{
    return x->w.wide ? "blockIdx.x * (long long)blockDim.x" : "blockIdx.x * blockDim.x";
}

static const char *all_threads(const Plainer *x)
{
    return x->w.wide ? "gridDim.x * (long long)blockDim.x" : "gridDim.x * blockDim.x";
}

/* Threads with a number from the count on have nothing to do. */
static void put_guard(Plainer *x, const char *name, const char *count)
{
    if (plain_slips(plain_of(x), SLIP_GUARD)) return;
    buffer_printf(&x->w.body, "    if (%s %s %s) return;\n", name,
                  plain_slips(plain_of(x), SLIP_BOUND) ? ">" : ">=", count);
}

/* ---- functions of the source ---- */

static const char *const fold_words_of[] = {
    [FOLD_SUM] = "sum", [FOLD_MAX] = "max", [FOLD_MIN] = "min", [FOLD_PROD] = "product"};

/* The first bits of KernelText.helpers are those of other kernels. */
enum { HELP_PLAIN = 16, HELP_LARGER = HELP_PLAIN, HELP_SMALLER, HELP_BLOCK };

static int take_help(Plainer *x, int bit)
{
    const int taken = x->w.t->helpers >> bit & 1;
    x->w.t->helpers |= 1u << bit;
    return !taken;
}

static void put_pack(Plainer *x)
{
    if (!take_help(x, HELP_PACK)) return;
    part_put(x->w.t->source, plain_helpers, "pack");
    buffer_puts(x->w.t->source, "\n");
}

static void help_order(Plainer *x, Fold f)
{
    if ((f != FOLD_MAX && f != FOLD_MIN) ||
        !take_help(x, f == FOLD_MAX ? HELP_LARGER : HELP_SMALLER))
        return;
    part_put(x->w.t->source, plain_helpers, f == FOLD_MAX ? "larger" : "smaller");
    buffer_puts(x->w.t->source, "\n");
}

static void put_joined(Buffer *to, Fold f, const char *at, const char *value)
{
    if (f == FOLD_SUM || f == FOLD_PROD)
        buffer_printf(to, "%s %s %s;\n", at, f == FOLD_SUM ? "+=" : "*=", value);
    else
        buffer_printf(to, "%s = %s(%s, %s);\n", at, f == FOLD_MAX ? "larger" : "smaller", at,
                      value);
}

void plain_join(Plainer *x, Fold f, const char *to, const char *value, const char *indent)
{
    help_order(x, f);
    buffer_puts(&x->w.body, indent);
    put_joined(&x->w.body, f, to, value);
}

/* A line of a block's fold. The first barrier and the sum over warps may be left out by mistake. */
static void put_block_line(Plainer *x, Fold f, const char *line, size_t len, int *barriers)
{
    Buffer *to = x->w.t->source;
    char at[80], value[80];
    const char *mark = memchr(line, '?', len), *name = memchr(line, '#', len);
    const size_t indent = strspn(line, " ");
    if (!strncmp(line + indent, "__syncthreads", 13) && !(*barriers)++ &&
        plain_slips(plain_of(x), SLIP_BARRIER))
        return;
    if (name) {
        buffer_append(to, line, (size_t)(name - line));
        buffer_printf(to, "%s%.*s\n", fold_words_of[f], (int)(line + len - name - 1), name + 1);
    } else if (mark) {
        snprintf(at, sizeof at, "%.*s", (int)(mark - 1 - line - (ptrdiff_t)indent), line + indent);
        snprintf(value, sizeof value, "%.*s", (int)(line + len - 1 - mark - 2), mark + 2);
        if (!strcmp(value, "part[w]") && plain_slips(plain_of(x), SLIP_PARTIAL))
            snprintf(value, sizeof value, "part[0]");
        buffer_append(to, line, indent);
        put_joined(to, f, at, value);
    } else {
        buffer_append(to, line, len);
        buffer_puts(to, "\n");
    }
}

static void help_block(Plainer *x, Fold f)
{
    const int tree = x->reduce == REDUCE_BY_TREE;
    Buffer text;
    int barriers = 0;
    if (!take_help(x, HELP_BLOCK + 2 * (int)f + tree)) return;
    help_order(x, f);
    buffer_init(&text, 1 << 14);
    part_put(&text, plain_helpers, tree ? "tree" : "shuffle");
    for (const char *line = text.data; *line;) {
        const size_t len = strcspn(line, "\n");
        put_block_line(x, f, line, len, &barriers);
        line += len + (line[len] == '\n');
    }
    buffer_puts(x->w.t->source, "\n");
    buffer_release(&text);
}

/* ---- elements ---- */

/* 1: the text of a step or a result has the place along the axis of vectors. */
static int needs_place(const Plainer *x, const unsigned char *set, int stores)
{
    const Writer *w = &x->w;
    const Kernel *k = w->k;
    for (int i = 0; i < k->n; i++) {
        const Step *s = &k->step[i];
        const int has = is_load(w, i) || s->place || node_of(w, i)->kind == NODE_COORD;
        if (set[i] && in_columns(w, i) && has && !writer_is_vector(w, i) &&
            kernel_loops(k, &s->at) >> w->last & 1)
            return 1;
    }
    for (int r = 0; r < k->n_roots && stores; r++)
        if (in_columns(w, k->root[r].step) && !writer_root_is_vector(w, r)) return 1;
    return 0;
}

static void put_read_pack(Plainer *x, int step, const char *indent)
{
    Writer *w = &x->w;
    const char *type = writer_ctype(w, step);
    char name[WRITER_NAME];
    put_pack(x);
    buffer_printf(&w->body, "%sPack<%s, V> %s = *(const Pack<%s, V> *)(%s + ", indent, type,
                  writer_pack(w, step, name), type, kernel_tensor(w->k, w->k->step[step].node, 0));
    writer_index(w, &w->k->step[step].at);
    buffer_puts(&w->body, ");\n");
}

static void put_packs(Plainer *x, const Pass *p, const unsigned char *set, const char *indent)
{
    Writer *w = &x->w;
    Kernel *k = w->k;
    w->flat = x->flat;
    for (int node = 0; node < k->nodes->n; node++)
        for (int i = 0; i < k->n; i++)
            if (k->step[i].node == node && set[i] && writer_is_vector(w, i))
                put_read_pack(x, i, indent);
    for (int r = 0; r < k->n_roots && !p->level; r++) {
        if (!in_columns(w, k->root[r].step) || !writer_root_is_vector(w, r)) continue;
        put_pack(x);
        buffer_printf(&w->body, "%sPack<%s, V> %s_v;\n", indent,
                      dtype_ctype(k->nodes->node[k->root[r].node].dtype),
                      kernel_tensor(k, k->root[r].node, 1));
    }
    if (w->vec > 1) w->flat = NULL; /* it is the first element of the vector */
}

static void put_value(Plainer *x, int r)
{
    Writer *w = &x->w;
    const int step = w->k->root[r].step;
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype);
    if (strcmp(type, writer_type(w, step))) buffer_printf(&w->body, "(%s)", type);
    writer_value(w, step, writer_type(w, step));
    buffer_puts(&w->body, ";\n");
}

static void put_place(Plainer *x, int r)
{
    buffer_printf(&x->w.body, "%s[", kernel_tensor(x->w.k, x->w.k->root[r].node, 1));
    writer_index(&x->w, &x->w.k->root[r].at);
    buffer_puts(&x->w.body, "] = ");
}

static void put_stores(Plainer *x, const char *indent)
{
    const Kernel *k = x->w.k;
    for (int r = 0; r < k->n_roots; r++) {
        if (!in_columns(&x->w, k->root[r].step)) continue;
        buffer_puts(&x->w.body, indent);
        if (writer_root_is_vector(&x->w, r))
            buffer_printf(&x->w.body, "%s_v.v[v] = ", kernel_tensor(x->w.k, k->root[r].node, 1));
        else
            put_place(x, r);
        put_value(x, r);
    }
}

static void put_vectors(Plainer *x, const char *indent)
{
    Writer *w = &x->w;
    Kernel *k = w->k;
    w->flat = x->flat;
    for (int r = 0; r < k->n_roots; r++) {
        if (!in_columns(w, k->root[r].step) || !writer_root_is_vector(w, r)) continue;
        buffer_printf(&w->body, "%s*(Pack<%s, V> *)(%s + ", indent,
                      dtype_ctype(k->nodes->node[k->root[r].node].dtype),
                      kernel_tensor(k, k->root[r].node, 1));
        writer_index(w, &k->root[r].at);
        buffer_printf(&w->body, ") = %s_v;\n", kernel_tensor(k, k->root[r].node, 1));
    }
}

static void put_fold_elements(Plainer *x, const Pass *p, int second, const char *indent);

/* 1: a step reads memory at a place that no other step gives. */
static int is_plain_load(const Writer *w, int step)
{
    const Kernel *k = w->k;
    const unsigned axes = index_axes(&k->step[step].at);
    if (!is_load(w, step) || k->step[step].inside) return 0;
    for (int i = 0; i < k->axes.n; i++)
        if (axes >> i & 1 && k->bound[i] >= 0) return 0;
    return 1;
}

/* The steps of an element: what is read, in the order of the parameters, then what is computed. */
static void put_steps(Plainer *x, const unsigned char *set, const char *indent)
{
    Writer *w = &x->w;
    for (int node = 0; node < w->k->nodes->n; node++)
        for (int i = 0; i < w->k->n; i++)
            if (w->k->step[i].node == node && set[i] && in_columns(w, i) && is_plain_load(w, i))
                writer_step(w, i, indent);
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && in_columns(w, i) && !is_fold(w, i) && !is_plain_load(w, i))
            writer_step(w, i, indent);
}

/* What a pass does with the element, or with V of them. second: of the folds of two passes. */
static void put_elements(Plainer *x, const Pass *p, int second, const char *indent)
{
    Writer *w = &x->w;
    unsigned char set[KERNEL_STEPS];
    char deeper[40];
    const int many = w->vec > 1;
    writer_needed(w, p, set);
    put_packs(x, p, set, indent);
    if (many) {
        const char *name = w->k->axes.name[w->last];
        const int place = needs_place(x, set, !p->level);
        if (place)
            buffer_printf(&w->body, "%s%s from_%s = %s;\n", indent, count_type(x), name, name);
        buffer_printf(&w->body, "%sfor (int v = 0; v < V; v++) {\n", indent);
        if (place)
            buffer_printf(&w->body, "%s    %s %s = from_%s + v;\n", indent, count_type(x), name,
                          name);
    }
    snprintf(deeper, sizeof deeper, "%s%s", indent, many ? "    " : "");
    put_steps(x, set, deeper);
    if (p->level)
        put_fold_elements(x, p, second, deeper);
    else
        put_stores(x, deeper);
    if (many) buffer_printf(&w->body, "%s}\n", indent);
    if (!p->level) put_vectors(x, indent);
}

/* ---- rows ---- */

static void put_loop(Plainer *x, const Pass *p, int second)
{
    Writer *w = &x->w;
    const unsigned mask = p->level ? p->over : writer_stored(w);
    const char *name = flat_name(x, mask, "c"), *by = w->vec > 1 ? " * V" : "";
    char end[PLAIN_TEXT];
    plain_count(x, mask, end);
    buffer_printf(&w->body, "    for (%s %s = ", count_type(x), name);
    buffer_printf(&w->body, "%s%s; ", x->row == ROW_THREAD ? "0" : "lane",
                  x->row == ROW_THREAD ? "" : by);
    buffer_printf(&w->body, "%s %s %s; ", name, plain_below(x), end);
    if (x->row == ROW_THREAD)
        buffer_printf(&w->body, w->vec == 1 ? "%s++) {\n" : "%s += V) {\n", name);
    else
        buffer_printf(&w->body, "%s += %s%s) {\n", name, x->row == ROW_WARP ? "32" : "blockDim.x",
                      by);
    plain_axes(x, mask, name, "        ");
    put_elements(x, p, second, "        ");
    buffer_puts(&w->body, "    }\n");
}

/* Where a fold's own number and that of its pair, the mean or the largest element, are. */
typedef struct {
    char own[WRITER_NAME], pair[WRITER_NAME + 8];
} FoldNames;

static FoldNames names_of(const Plainer *x, int step)
{
    FoldNames f;
    snprintf(f.own, sizeof f.own, "%s", x->w.name[step]);
    snprintf(f.pair, sizeof f.pair, "%s_of", f.own);
    for (int i = 0; i < x->w.k->n; i++)
        if (i != step && is_fold(&x->w, i) && fold_state(&x->w, i) == step)
            snprintf(f.pair, sizeof f.pair, "%s", x->w.name[i]);
    return f;
}

static Fold fold_of(const Plainer *x, int step)
{
    return node_of(&x->w, step)->fold;
}

/* 1: the step is a fold of the pass, with a number of its own. */
static int is_own(const Plainer *x, const Pass *p, int step)
{
    return writer_takes_part(&x->w, p, step) && fold_state(&x->w, step) == step;
}

static int is_online(const Plainer *x, int step)
{
    return fold_of(x, step) == FOLD_EXPSUM && x->passes == 1;
}

/* The number that is folded in the first pass, and how; NULL: there is none. */
static const char *first_of(const Plainer *x, int step, FoldNames *f, Fold *how)
{
    *how = fold_of(x, step);
    if (*how == FOLD_MEAN) return *how = FOLD_SUM, f->own;
    if (*how == FOLD_SPREAD) return *how = FOLD_SUM, f->pair;
    if (*how == FOLD_EXPSUM) return *how = FOLD_MAX, f->pair;
    return f->own;
}

static void put_online(Plainer *x, const FoldNames *f, const char *value, const char *indent)
{
    Buffer *to = &x->w.body;
    buffer_printf(to, "%sif (%s > %s) {\n", indent, value, f->pair);
    if (!plain_slips(plain_of(x), SLIP_PARTIAL))
        buffer_printf(to, "%s    %s *= exp(%s - %s);\n", indent, f->own, f->pair, value);
    buffer_printf(to, "%s    %s = %s;\n%s}\n", indent, f->pair, value, indent);
    buffer_printf(to, "%s%s += %s == %s ? 1 : exp(%s - %s);\n", indent, f->own, value, f->pair,
                  value, f->pair);
}

static void put_fold_elements(Plainer *x, const Pass *p, int second, const char *indent)
{
    char value[WRITER_NAME], term[4 * WRITER_NAME + 40];
    for (int i = 0; i < x->w.k->n; i++) {
        FoldNames f = names_of(x, i);
        Fold how;
        if (!is_own(x, p, i)) continue;
        snprintf(value, sizeof value, "%s",
                 x->w.name[writer_origin(&x->w, x->w.k->step[i].arg[0])]);
        const char *to = first_of(x, i, &f, &how);
        if (is_online(x, i)) {
            put_online(x, &f, value, indent);
        } else if (!second) {
            plain_join(x, how, to, value, indent);
        } else if (fold_of(x, i) == FOLD_SPREAD) {
            snprintf(term, sizeof term, "(%s - %s) * (%s - %s)", value, f.pair, value, f.pair);
            plain_join(x, FOLD_SUM, f.own, term, indent);
        } else if (fold_of(x, i) == FOLD_EXPSUM) {
            snprintf(term, sizeof term, "exp(%s - %s)", value, f.pair);
            plain_join(x, FOLD_SUM, f.own, term, indent);
        }
    }
}

/* 1: the elements of a fold may all be above zero, so that 0 begins a maximum, too. */
static int is_positive(const Plainer *x, int step)
{
    const Node *a = node_of(&x->w, writer_origin(&x->w, x->w.k->step[step].arg[0]));
    return a->kind == NODE_POINT && (strstr(a->text, "exp") || strstr(a->text, "max") ||
                                     strstr(a->text, "a * a") || strstr(a->text, "abs"));
}

/* The wrong number at which a fold begins by mistake; NULL: there is none that would matter. */
static const char *wrong_start(const Plainer *x, int step, Fold f)
{
    /* Any number near the largest one will do, and the first element scales a sum of one pass to 0. */
    if (fold_of(x, step) == FOLD_EXPSUM && (f != FOLD_SUM || x->passes == 1)) return NULL;
    if (f == FOLD_SUM) return "1";
    if (f == FOLD_PROD) return "0";
    return !is_positive(x, step) ? "0" : f == FOLD_MAX ? "INFINITY" : "0";
}

/* Begins a fold, or the first one of a pair. */
static void put_start(Plainer *x, int step, const char *name, Fold f)
{
    static const char *const start[] = {"0", "-INFINITY", "INFINITY", "1"};
    const char *wrong = wrong_start(x, step, f), *type = writer_type(&x->w, step);
    const char *from = wrong && plain_slips(plain_of(x), SLIP_IDENTITY) ? wrong : start[f];
    if (*from == '-' && !strcmp(type, "long long")) from = "-9223372036854775807LL - 1";
    if (*from == 'I' && !strcmp(type, "long long")) from = "9223372036854775807LL";
    buffer_printf(&x->w.body, "    %s %s = %s;\n", type, name, from);
}

/* Joins the numbers of a row's threads. */
static void put_over_threads(Plainer *x, Fold f, const char *name)
{
    char value[WRITER_NAME + 40];
    if (x->row == ROW_BLOCK) {
        help_block(x, f);
        buffer_printf(&x->w.body, "    %s = %s_%s(%s);\n", name,
                      x->reduce == REDUCE_BY_TREE ? "tree" : "block", fold_words_of[f], name);
    } else if (x->row == ROW_WARP) {
        snprintf(value, sizeof value, "__shfl_xor_sync(~0u, %s, d)", name);
        buffer_printf(&x->w.body, "    for (int d = %d; d > 0; d /= 2) ",
                      plain_slips(plain_of(x), SLIP_PARTIAL) ? 8 : 16);
        plain_join(x, f, name, value, "");
    }
}

static void put_online_result(Plainer *x, const FoldNames *f, const char *type)
{
    if (x->row == ROW_THREAD) return;
    buffer_printf(&x->w.body, "    %s own_%s = %s;\n", type, f->pair, f->pair);
    put_over_threads(x, FOLD_MAX, f->pair);
    buffer_printf(&x->w.body, "    if (own_%s != %s) %s *= exp(own_%s - %s);\n", f->pair, f->pair,
                  f->own, f->pair, f->pair);
    put_over_threads(x, FOLD_SUM, f->own);
}

/* The number of elements of which a mean is. */
static void put_mean(Plainer *x, const char *name, const Pass *p)
{
    char count[PLAIN_TEXT];
    plain_count(x, p->over, count);
    buffer_printf(&x->w.body, strchr(count, '*') ? "    %s /= (%s);\n" : "    %s /= %s;\n", name,
                  count);
}

static void put_pass(Plainer *x, const Pass *p, int second)
{
    int any = 0;
    for (int i = 0; i < x->w.k->n; i++) {
        FoldNames f = names_of(x, i);
        Fold how;
        if (!is_own(x, p, i)) continue;
        const int two = fold_of(x, i) == FOLD_SPREAD || fold_of(x, i) == FOLD_EXPSUM;
        const char *first = first_of(x, i, &f, &how);
        if (second && (!two || is_online(x, i))) continue;
        any = 1;
        if (!second) put_start(x, i, first, how);
        if (second || is_online(x, i)) put_start(x, i, f.own, FOLD_SUM);
    }
    if (!any) return;
    put_loop(x, p, second);
    for (int i = 0; i < x->w.k->n; i++) {
        FoldNames f = names_of(x, i);
        Fold how;
        if (!is_own(x, p, i)) continue;
        const int two = fold_of(x, i) == FOLD_SPREAD || fold_of(x, i) == FOLD_EXPSUM;
        const char *first = first_of(x, i, &f, &how);
        if (is_online(x, i)) {
            if (!second) put_online_result(x, &f, writer_type(&x->w, i));
        } else if (!second) {
            put_over_threads(x, how, first);
            if (fold_of(x, i) == FOLD_SPREAD || fold_of(x, i) == FOLD_MEAN) put_mean(x, first, p);
        } else if (two) {
            put_over_threads(x, FOLD_SUM, f.own);
        }
    }
}

static void put_level(Plainer *x, int level)
{
    Writer *w = &x->w;
    for (int i = 0; i < w->k->n; i++) {
        const Pass p = {level, w->k->step[i].over};
        if (!is_fold(w, i) || w->k->step[i].level != level || w->defined[i]) continue;
        put_pass(x, &p, 0);
        put_pass(x, &p, 1);
        for (int j = i; j < w->k->n; j++)
            if (writer_takes_part(w, &p, j)) w->defined[j] = 1;
    }
}

void plain_results(Plainer *x, const char *guard)
{
    const Kernel *k = x->w.k;
    for (int r = 0; r < k->n_roots; r++) {
        if (in_columns(&x->w, k->root[r].step)) continue;
        buffer_printf(&x->w.body, "    %s", guard);
        put_place(x, r);
        put_value(x, r);
    }
}

static void put_row_head(Plainer *x)
{
    const char *row = flat_name(x, x->w.k->rows, "i"), *type = count_type(x);
    char rows[PLAIN_TEXT];
    Buffer *to = &x->w.body;
    plain_count(x, x->w.k->rows, rows);
    if (x->row == ROW_BLOCK) {
        buffer_printf(to, "    %s lane = threadIdx.x, %s = blockIdx.x;\n", type, row);
    } else if (x->row == ROW_WARP) {
        buffer_printf(to, "    %s lane = threadIdx.x %% 32, %s = (%s + threadIdx.x) / 32;\n", type,
                      row, before_block(x));
        put_guard(x, row, rows);
    } else {
        buffer_printf(to, "    %s %s = %s + threadIdx.x;\n", type, row, before_block(x));
        put_guard(x, row, rows);
    }
    plain_axes(x, x->w.k->rows, row, "    ");
}

static void put_rows(Plainer *x)
{
    Writer *w = &x->w;
    int stores = 0;
    put_row_head(x);
    writer_row_steps(w, 0);
    for (int level = 1; level <= writer_passes(w); level++) {
        put_level(x, level);
        writer_row_steps(w, level);
    }
    for (int r = 0; r < w->k->n_roots; r++) stores |= in_columns(w, w->k->root[r].step);
    if (stores) put_loop(x, &(Pass){0, 0}, 0);
    plain_results(x, x->row == ROW_THREAD ? "" : "if (lane == 0) ");
}

/* ---- where nothing is folded ---- */

static void put_flat(Plainer *x)
{
    Writer *w = &x->w;
    const char *name = flat_name(x, w->columns, "i"), *type = count_type(x);
    char count[PLAIN_TEXT];
    plain_count(x, w->columns, count);
    writer_row_steps(w, 0);
    x->flat = w->flat = plain_flat(x);
    if (w->vec > 1 || x->trips > 1) {
        const char *by = w->vec > 1 ? " * V" : "";
        buffer_printf(&w->body,
                      *by ? "    for (%s %s = (%s + threadIdx.x)%s; "
                          : "    for (%s %s = %s + threadIdx.x%s; ",
                      type, name, before_block(x), by);
        buffer_printf(&w->body, "%s %s %s; ", name, plain_below(x), count);
        buffer_printf(&w->body, "%s += %s%s) {\n", name, all_threads(x), by);
        plain_axes(x, w->columns, name, "        ");
        put_elements(x, &(Pass){0, 0}, 0, "        ");
        buffer_puts(&w->body, "    }\n");
        return;
    }
    buffer_printf(&w->body, "    %s %s = %s + threadIdx.x;\n", type, name, before_block(x));
    put_guard(x, name, count);
    plain_axes(x, w->columns, name, "    ");
    put_elements(x, &(Pass){0, 0}, 0, "    ");
    plain_results(x, "");
}

/* ---- the whole ---- */

/* Blocks and threads of a launch for `count` elements, or rows. */
static void put_blocks(Plainer *x, const char *count)
{
    const Writer *w = &x->w;
    Buffer *to = w->t->plan;
    const int warps = x->row == ROW_WARP, folds = w->k->has_folds;
    const int slips = plain_slips(plain_of(x), SLIP_BLOCKS);
    buffer_puts(to, slips ? "(" : "ceil_div(");
    buffer_printf(to, warps && strpbrk(count, "+-/") ? "(%s)" : "%s", count);
    buffer_printf(to, "%s%s%d", warps ? " * 32" : "", slips ? ") / (" : ", ", w->block);
    if (!folds && w->vec > 1) buffer_printf(to, " * %d", w->vec);
    if (!folds && x->trips > 1) buffer_printf(to, " * %d", x->trips);
    buffer_printf(to, "), %d>>>(", w->block);
}

static int put_launch(Plainer *x)
{
    Writer *w = &x->w;
    Kernel *k = w->k;
    char count[SIZE_TEXT];
    const Size all = writer_product(w, k->has_folds ? k->rows : w->columns);
    if (size_text(k->nodes->sizes, all, count, w->err)) return -1;
    buffer_printf(w->t->plan, "//@ launch kernel_%d<<<", w->number);
    if (k->has_folds && x->row == ROW_BLOCK)
        buffer_printf(w->t->plan, "%s, %d>>>(", count, w->block);
    else
        put_blocks(x, count);
    if (kernel_put_arguments(k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, ")\n");
    return 0;
}

static int has_exponential_sum(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && node_of(w, i)->fold == FOLD_EXPSUM) return 1;
    return 0;
}

static void choose_rows(Plainer *x, int lanes)
{
    Writer *w = &x->w;
    const int by_default = lanes == 1 ? ROW_THREAD : lanes <= 32 ? ROW_WARP : ROW_BLOCK;
    x->row = w->k->has_folds ? writer_choose(w, GENE_ROW, by_default, ROW_THREAD, ROW_BLOCK)
                             : ROW_THREAD;
    if (x->row == ROW_BLOCK)
        x->reduce =
            writer_choose(w, GENE_REDUCE, REDUCE_BY_SHUFFLE, REDUCE_BY_SHUFFLE, REDUCE_BY_TREE);
    if (!w->k->has_folds) x->trips = writer_choose(w, GENE_ITEMS, 1, 1, 8);
    if (has_exponential_sum(w)) x->passes = writer_choose(w, GENE_PASS, 1, 1, 2);
}

int plain_write(Kernel *k, KernelText *t, Error *err)
{
    unsigned char kept[KERNEL_STEPS] = {0}, defined[KERNEL_STEPS] = {0};
    char names[KERNEL_STEPS][WRITER_NAME];
    Plainer x = {.w = {.k = k, .t = t, .err = err, .kept = kept, .defined = defined},
                 .passes = 2,
                 .trips = 1};
    Writer *w = &x.w;
    buffer_init(&w->body, 1 << 20);
    k->scope.of = k, k->scope.axes = &k->axes;
    writer_axes_plain(w);
    plain_name_axes(&x);
    plain_name_values(&x, names);
    if (!plain_tile(&x)) {
        choose_rows(&x, writer_schedule_plain(w));
        if (k->has_folds)
            put_rows(&x);
        else
            put_flat(&x);
        if (!w->failed) writer_source(w, w->block);
        if (!w->failed && put_launch(&x)) w->failed = 1;
    }
    if (w->body.full) w->failed = 1, error_set(err, ERROR_UNSUPPORTED, "a kernel of too much text");
    buffer_release(&w->body);
    return w->failed ? -1 : 0;
}
