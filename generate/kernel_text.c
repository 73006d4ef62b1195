/* The source of a kernel. Each thread takes `V` neighbouring elements along the last column axis: of all
 * elements where nothing is folded, else of a row, which `lanes` threads share. Where a row's elements lie
 * apart, neighbouring threads take neighbouring rows. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "generate/branch_text.h"
#include "generate/estimate.h"
#include "generate/fold_text.h"
#include "generate/plain.h"
#include "generate/writer.h"
#include "ops/op_text.h"

/* So many kernels of a plan have numbers in place of their timed sizes: in a plan of many kernels these
 * repeat, and texts with numbers differ. */
enum { MOST_NUMBERED = 12, MANY_THREADS = 132 * 1024 };

EMBED(generate_helpers, "generate/helpers.cu")

static const char *const help_name[] = {
    "pack",  "store", "over",         "fold", "fold_columns", "peak",    "exchange", "moments",
    "order", "scan",  "scan_columns", "near", "quick",        "divisor", "beside"};

const char *writer_size(Writer *w, Size s)
{
    const char *name = kernel_size(w->k, s, w->err);
    if (!name) w->failed = 1;
    return name ? name : "0";
}

void writer_help(Writer *w, int which)
{
    if (w->t->helpers >> which & 1) return;
    w->t->helpers |= 1u << which;
    part_put(w->t->source, generate_helpers, help_name[which]);
    buffer_puts(w->t->source, "\n");
}

/* ---- expressions ---- */

const char *writer_type(const Writer *w, int step)
{
    const Node *x = node_of(w, step);
    if (w->k->step[step].place) return w->wide ? "long long" : "int";
    if (x->kind == NODE_PAD || x->kind == NODE_SCAN) return text_type(x->dtype);
    if (is_load(w, step)) return text_type(x->dtype);
    if (x->kind == NODE_COORD && !w->wide && !w->k->nodes->plain) return "int";
    if (x->kind == NODE_FOLD || x->kind == NODE_COORD) return text_type(x->dtype);
    return x->dtype == DTYPE_B8 ? "bool" : writer_point_type(w, step);
}

void writer_index(Writer *w, const Index *at)
{
    const Index own = plain_index(w->k->nodes->plain, at);
    const size_t from = w->body.len;
    if (w->flat && index_same(&own, w->flat)) {
        buffer_puts(&w->body, "i");
        return;
    }
    if (index_write(&w->k->scope, &own, &w->body, w->err)) w->failed = 1;
    if (!w->k->nodes->plain || w->body.full || w->body.data[from] != '(') return;
    memmove(w->body.data + from, w->body.data + from + 1, w->body.len - from);
    w->body.len -= 2; /* both brackets */
    w->body.data[w->body.len] = 0;
}

const char *writer_pack(const Writer *w, int step, char out[WRITER_NAME])
{
    char *end;
    snprintf(out, WRITER_NAME, "p%d", step);
    if (!w->name || !strchr(w->name[step], '_')) return out;
    snprintf(out, WRITER_NAME, "%s", w->name[step]);
    end = strrchr(out, '_'); /* "x_v" of "x_i" */
    end[1] = 'v';
    return out;
}

const char *writer_name(const Writer *w, int step, char out[WRITER_NAME])
{
    if (w->name) return w->name[step];
    snprintf(out, WRITER_NAME, "t%d", step);
    return out;
}

void writer_value(Writer *w, int step, const char *type)
{
    char name[WRITER_NAME];
    step = writer_origin(w, step);
    if (strcmp(writer_type(w, step), type)) buffer_printf(&w->body, "(%s)", type);
    buffer_puts(&w->body, writer_name(w, step, name));
}

/* ---- steps ---- */

static void put_load(Writer *w, int step)
{
    const char *type = writer_type(w, step);
    if (writer_near_load(w, step)) return;
    if (!w->k->nodes->plain || strcmp(type, writer_ctype(w, step)))
        buffer_printf(&w->body, "(%s)", type);
    buffer_printf(&w->body, "%s[", kernel_tensor(w->k, w->k->step[step].node, 0));
    writer_index(w, &w->k->step[step].at);
    buffer_puts(&w->body, "]");
}

static void put_packed(Writer *w, int step)
{
    const char *type = writer_type(w, step);
    if (!w->k->nodes->plain || strcmp(type, writer_ctype(w, step)))
        buffer_printf(&w->body, "(%s)", type);
    char name[WRITER_NAME];
    buffer_printf(&w->body, "%s.v[v]", writer_pack(w, step, name));
}

static void put_padded(Writer *w, int step)
{
    writer_value(w, w->k->step[step].arg[0], writer_type(w, step));
    if (w->interior) return;
    buffer_puts(&w->body, " : ");
    writer_number(w, node_of(w, step)->number[0], writer_type(w, step));
}

/* 1: the step is computed from others, and read from no memory. */
static int is_expression(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_POINT && !is_load(w, step) && !w->k->step[step].place &&
           !(w->moved && w->moved[step]) && !writer_is_packed(w, step);
}

void writer_step(Writer *w, int step, const char *indent)
{
    const Step *s = &w->k->step[step];
    char name[WRITER_NAME];
    if (is_within_loop(w, step)) return;
    if (s->looped && !writer_is_loop(w, step)) {
        fold_put_loop(w, step, NULL, indent);
        return;
    }
    if (writer_origin(w, step) != step || plain_slips(w->k->nodes->plain, SLIP_NAME)) return;
    const int branched = w->branch && w->branch[step];
    if (is_expression(w, step) && !branched && !writer_is_packed(w, step))
        writer_ahead(w, step, indent);
    buffer_printf(&w->body, "%s%s%s %s = ", indent, w->k->nodes->plain ? "" : "const ",
                  writer_type(w, step), writer_name(w, step, name));
    if (writer_is_guarded(w, step) && !branched && !w->interior)
        writer_condition(w, step), buffer_puts(&w->body, " ? ");
    if (w->moved && w->moved[step])
        buffer_printf(&w->body, "(%s)keep%d[row + v][c]", writer_type(w, step), step);
    else if (s->place || node_of(w, step)->kind == NODE_COORD)
        writer_index(w, &s->at);
    else if (writer_is_packed(w, step) || writer_is_later(w, step))
        put_packed(w, step);
    else if (is_load(w, step))
        put_load(w, step);
    else if (branched)
        buffer_printf(&w->body, node_of(w, step)->kind == NODE_PAD ? "u%d[v]" : "u%d", step);
    else if (node_of(w, step)->kind == NODE_PAD)
        put_padded(w, step);
    else
        writer_point(w, step);
    buffer_puts(&w->body, ";\n");
    for (int i = 0; i < w->k->axes.n && s->place; i++) {
        if (w->k->bound[i] != step) continue;
        buffer_printf(&w->body, "%sconst %s %s = %s(unsigned)%s", indent, writer_type(w, step),
                      w->k->axes.name[i], w->interior ? "" : "min(", writer_name(w, step, name));
        if (!w->interior)
            buffer_printf(&w->body, ", (unsigned)%s - 1u)", writer_size(w, w->k->axes.size[i]));
        buffer_puts(&w->body, ";\n");
    }
}

void writer_row_steps(Writer *w, int level)
{
    for (int i = 0; i < w->k->n; i++) {
        if (in_columns(w, i) || is_fold(w, i) || w->defined[i] || w->k->step[i].level > level)
            continue;
        writer_step(w, i, "    ");
        w->defined[i] = 1;
    }
}

const char *writer_ctype(const Writer *w, int step)
{
    return dtype_ctype(node_of(w, step)->dtype);
}

void writer_stores(Writer *w, const char *indent)
{
    for (int r = 0; r < w->k->n_roots; r++) {
        int step = w->k->root[r].step;
        if (!in_columns(w, step)) continue;
        const Node *x = &w->k->nodes->node[w->k->root[r].node];
        if (writer_root_is_vector(w, r))
            buffer_printf(&w->body, "%sy%d.v[v] = (%s)", indent, r, dtype_ctype(x->dtype));
        else {
            buffer_printf(&w->body, "%s%s[", indent, kernel_tensor(w->k, w->k->root[r].node, 1));
            writer_index(w, &w->k->root[r].at);
            buffer_printf(&w->body, "] = (%s)", dtype_ctype(x->dtype));
        }
        writer_value(w, step, writer_type(w, step));
        buffer_puts(&w->body, ";\n");
    }
}

/* Where a step's pack is: "keep0[k]", "q0[u]", or in memory: NULL. */
typedef enum { IN_MEMORY, IN_BATCH, IN_REGISTERS } Place;

static const char *pack_place(const Writer *w, int step, Place from, char out[32])
{
    if (from == IN_MEMORY || (from == IN_REGISTERS && !w->kept[step])) return NULL;
    snprintf(out, 32, from == IN_BATCH ? "q%d[u]" : "keep%d[k]", step);
    return out;
}

void writer_vector_stores(Writer *w, const char *indent)
{
    for (int r = 0; r < w->k->n_roots; r++) {
        if (!in_columns(w, w->k->root[r].step) || !writer_root_is_vector(w, r)) continue;
        const Dtype dtype = w->k->nodes->node[w->k->root[r].node].dtype;
        const char *tensor = kernel_tensor(w->k, w->k->root[r].node, 1);
        /* Of one result without a fold the compiler joins elements: its order is a little faster. Of a piece
         * of a row (BatchNorm) or a gathered one it may store each float by itself (2026-12-01). */
        const int apart = w->k->n_conditions > 1 || w->k->n_roots > 1 || w->k->has_folds ||
                          w->slices || kernel_gathers(w->k);
        const int words = dtype_size(dtype) <= 4 && apart && !w->k->nodes->plain;
        if (words) {
            writer_help(w, HELP_STORE);
            buffer_printf(&w->body, "%sstore_words(%s + ", indent, tensor);
        } else {
            buffer_printf(&w->body, "%s*(Pack<%s, V> *)(%s + ", indent, dtype_ctype(dtype), tensor);
        }
        writer_index(w, &w->k->root[r].at);
        buffer_printf(&w->body, words ? ", y%d);\n" : ") = y%d;\n", r);
    }
}

/* The type of a pack's elements. */
static const char *pack_type(const Writer *w, int step)
{
    return writer_is_value(w, step) ? writer_type(w, step) : writer_ctype(w, step);
}

/* The loads of the pass that are read once their places are known, and the steps that these places need,
 * which are marked in `ahead`. */
static void put_later(Writer *w, const Pass *p, unsigned char *ahead, const char *indent)
{
    unsigned char set[KERNEL_STEPS];
    char name[16];
    memset(ahead, 0, KERNEL_STEPS);
    writer_needed(w, p, set);
    for (int i = 0; i < w->k->n; i++)
        for (int a = 0; a < w->k->axes.n && set[i] && writer_is_later(w, i); a++)
            if (index_axes(&w->k->step[i].at) >> a & 1 && w->k->bound[a] >= 0)
                writer_close(w, w->k->bound[a], ahead);
    for (int i = 0; i < w->k->n; i++) {
        ahead[i] &= in_columns(w, i) && !is_fold(w, i);
        if (ahead[i]) writer_step(w, i, indent);
    }
    for (int i = 0; i < w->k->n; i++) {
        if (!set[i] || !writer_is_later(w, i)) continue;
        snprintf(name, sizeof name, "p%d", i);
        writer_help(w, HELP_PACK);
        buffer_printf(&w->body, "%sPack<%s, V> %s;\n", indent, writer_ctype(w, i), name);
        writer_fetch(w, i, name, indent);
    }
}

/* The work on V elements that begin at `c`. */
static void put_elements(Writer *w, const Pass *p, Place from, const char *indent)
{
    unsigned char set[KERNEL_STEPS], in[KERNEL_STEPS], ahead[KERNEL_STEPS];
    char deeper[40], place[32], name_of[16];
    snprintf(deeper, sizeof deeper, "%s    ", indent);
    writer_needed(w, p, set);
    branch_find(w, p, in);
    for (int i = 0; i < w->k->n; i++) {
        set[i] &= !branch_hides(w, in, i);
        if (!set[i] || !writer_is_packed(w, i)) continue;
        const char *at = pack_place(w, i, from, place);
        writer_help(w, HELP_PACK);
        buffer_printf(&w->body, "%sPack<%s, V> p%d%s%s;\n", indent, pack_type(w, i), i,
                      at ? " = " : "", at ? at : "");
        snprintf(name_of, sizeof name_of, "p%d", i);
        if (!at) writer_fetch(w, i, name_of, indent);
    }
    for (int r = 0; r < w->k->n_roots && !p->level; r++)
        if (in_columns(w, w->k->root[r].step) && writer_root_is_vector(w, r)) {
            writer_help(w, HELP_PACK);
            buffer_printf(&w->body, "%sPack<%s, V> y%d;\n", indent,
                          dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), r);
        }
    if (from != IN_BATCH) fold_put_values(w, p, 1, indent);
    put_later(w, p, ahead, indent);
    branch_put(w, in, indent);
    if (w->vec > 1)
        branch_put_elements_head(w, indent);
    else
        buffer_printf(&w->body, "%s{\n%sconst int v = 0;\n%s(void)v;\n", indent, deeper, deeper);
    w->branch = in;
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && !ahead[i] && in_columns(w, i) && !is_fold(w, i)) {
            writer_step(w, i, deeper);
            if (from == IN_REGISTERS && writer_is_new(w, set, i))
                buffer_printf(&w->body, "%skeep%d[k].v[v] = t%d;\n", deeper, i, i);
        }
    for (int i = 0; i < w->k->n && p->level; i++)
        if (writer_takes_part(w, p, i)) fold_put_element(w, i, from == IN_BATCH, deeper);
    if (!p->level) writer_stores(w, deeper);
    w->branch = NULL;
    buffer_printf(&w->body, "%s}\n", indent);
    if (from != IN_BATCH) fold_put_taken(w, p, 1, indent);
    if (!p->level) writer_vector_stores(w, indent);
}

/* The axes of a flat number, the last of `mask` varying fastest. The axes of memory in C order come in the
 * order of their steps in the first result, in which tracing numbers them. */
void writer_axes(Writer *w, unsigned mask, const char *flat, const char *type, const char *indent)
{
    const Axes *a = &w->k->axes;
    int left = 0, last = -1;
    for (int i = 0; i < a->n; i++)
        if (size_is(a->size[i], 1)) mask &= ~(1u << i);
    unsigned order = mask;
    if (w->last >= 0 && mask >> w->last & 1) last = w->last;
    for (int i = 0; i < a->n; i++)
        if (mask >> i & 1)
            left++, last = last < 0 || (mask & w->columns && last == w->last) ? last : i;
    if (last < 0 || !(mask >> last & 1))
        for (int i = 0; i < a->n; i++)
            if (mask >> i & 1) last = i;
    if (!left) return;
    /* Numbers of rows and of elements are parameters of 32 bits where no tensor is wide. */
    const int narrow = !strcmp(type, "int") || (w->slices && !strcmp(flat, "row")) ||
                       (!w->wide && !w->k->nodes->plain);
    /* A product of what comes from 32 bits is one instruction. */
    const char *cast = narrow && strcmp(type, "int") && !w->k->nodes->plain ? "(int)" : "";
    if (left > 1) {
        if (!narrow) writer_help(w, HELP_OVER);
        buffer_printf(&w->body, "%s%s rest%u = %s;\n", indent, narrow ? "unsigned" : "long long",
                      mask, flat);
    }
    for (int n = left; n > 0; n--) {
        int i = last;
        if (n < left)
            for (i = a->n - 1; i >= 0 && !(order >> i & 1); i--) continue;
        order &= ~(1u << i);
        const char *prefix = i == w->last && w->vec > 1 ? "from_" : "";
        if (n == 1 && left == 1) {
            buffer_printf(&w->body, "%sconst %s %s%s = %s;\n", indent, type, prefix, a->name[i],
                          flat);
        } else if (n == 1) {
            buffer_printf(&w->body, "%sconst %s %s%s = (%s)%srest%u;\n", indent, type, prefix,
                          a->name[i], type, cast, mask);
        } else {
            const char *size = writer_size(w, a->size[i]);
            char over[64];
            snprintf(over, sizeof over, narrow ? "rest%u / (unsigned)%s" : "over(rest%u, %s)", mask,
                     size);
            buffer_printf(&w->body, "%sconst %s %s%s = (%s)%s(rest%u - %s * %s);\n", indent, type,
                          prefix, a->name[i], type, cast, mask, over, size);
            buffer_printf(&w->body, "%srest%u = %s;\n", indent, mask, over);
        }
        if (*prefix)
            buffer_printf(&w->body, "%sconst %s %s = from_%s;\n", indent, type, a->name[i],
                          a->name[i]);
    }
}

/* Loops over vectors: the place of the k-th or u-th vector of a thread, `at`, in a variable `name`, where
 * it lies before `end`. end NULL: all do. */
typedef struct {
    const char *type, *name, *at, *end, *counter;
    int n;
    unsigned mask;
} Strip;

static void put_strip_head(Writer *w, const Strip *l, const char *indent)
{
    char deeper[40];
    snprintf(deeper, sizeof deeper, "%s        ", indent);
    buffer_printf(&w->body,
                  "#pragma unroll\n%sfor (int %s = 0; %s < %d; %s++) {\n"
                  "%s    const %s %s = %s;\n",
                  indent, l->counter, l->counter, l->n, l->counter, indent, l->type, l->name,
                  l->at);
    if (l->end)
        buffer_printf(&w->body, "%s    if (%s < %s) {\n", indent, l->name, l->end);
    else
        buffer_printf(&w->body, "%s    {\n", indent);
    writer_axes(w, l->mask, l->name, l->type, deeper);
}

/* All loads of the pass that `from` holds come first, then the work on each. */
static void put_strip(Writer *w, const Pass *p, const Strip *l, Place from, const char *indent)
{
    unsigned char set[KERNEL_STEPS], in[KERNEL_STEPS];
    char deeper[40], place[32];
    int any = 0;
    writer_needed(w, p, set);
    branch_find(w, p, in);
    for (int i = 0; i < w->k->n; i++) {
        set[i] = set[i] && !in[i] && writer_is_packed(w, i) && w->kept[i] < 2 &&
                 pack_place(w, i, from, place) != NULL;
        if (set[i] && from == IN_BATCH) {
            writer_help(w, HELP_PACK);
            buffer_printf(&w->body, "%sPack<%s, V> q%d[%d];\n", indent, writer_ctype(w, i), i,
                          l->n);
        }
        any |= set[i];
    }
    snprintf(deeper, sizeof deeper, "%s        ", indent);
    if (any) {
        put_strip_head(w, l, indent);
        for (int i = 0; i < w->k->n; i++)
            if (set[i]) writer_fetch(w, i, pack_place(w, i, from, place), deeper);
        buffer_printf(&w->body, "%s    }\n%s}\n", indent, indent);
    }
    if (from == IN_BATCH) fold_put_values(w, p, l->n, indent);
    put_strip_head(w, l, indent);
    put_elements(w, p, from, deeper);
    buffer_printf(&w->body, "%s    }\n%s}\n", indent, indent);
    if (from == IN_BATCH) fold_put_taken(w, p, l->n, indent);
    for (int i = 0; i < w->k->n && from == IN_REGISTERS; i++)
        if (set[i]) w->kept[i] = 2;
    writer_needed(w, p, set);
    for (int i = 0; i < w->k->n && from == IN_REGISTERS; i++)
        if (writer_is_new(w, set, i) && !branch_hides(w, in, i)) w->kept[i] = 2;
}

/* 1: threads are so many that each has the schedule's loads at once. NVVM unrolls rounds of a known number,
 * which helps few (2026-11-30, H200: sums of 8 GB over 4,096 rows: four loads 2,028 us, sixteen 2,471). */
static int fills_gpu(const Writer *w)
{
    return writer_product(w, w->k->rows).at[0] * w->lanes >= MANY_THREADS;
}

void writer_loop(Writer *w, const Pass *p)
{
    unsigned mask = p->level ? p->over : writer_stored(w);
    const char *type = w->wide ? "long long" : "int", *end = w->part >= 0 ? "end" : NULL;
    char cols[64], begin[64], at[64];
    snprintf(cols, sizeof cols, "%s", end ? end : fold_end(w, mask, at));
    snprintf(begin, sizeof begin, "%s", end ? "first + " : "");
    if (w->keep) {
        snprintf(at, sizeof at, "(k * %d + lane) * V", w->lanes);
        put_strip(w, p, &(Strip){type, "c", at, cols, "k", w->keep, mask}, IN_REGISTERS, "    ");
        snprintf(begin, sizeof begin, "%d * V + ", w->keep * w->lanes);
    }
    unsigned char kept[KERNEL_STEPS];
    memcpy(kept, w->kept, sizeof kept);
    memset(w->kept, 0, KERNEL_STEPS);
    buffer_printf(&w->body, "    %s c%u = %slane * V;\n", type, w->n_loops, begin);
    if (w->items > 1) {
        snprintf(at, sizeof at, "c%u + u * %d * V", w->n_loops, w->lanes);
        buffer_printf(&w->body, "%s    for (; c%u + %d * V < %s; c%u += %d * V) {\n",
                      fills_gpu(w) ? "#pragma unroll 1\n" : "", w->n_loops,
                      w->lanes * (w->items - 1), cols, w->n_loops, w->lanes * w->items);
        put_strip(w, p, &(Strip){type, "c", at, NULL, "u", w->items, mask}, IN_BATCH, "        ");
        buffer_puts(&w->body, "    }\n");
    }
    if (w->alone) buffer_puts(&w->body, "#pragma unroll\n");
    buffer_printf(&w->body, "    for (; c%u < %s; c%u += %d * V) {\n        const %s c = c%u;\n",
                  w->n_loops, cols, w->n_loops, w->lanes, type, w->n_loops);
    w->n_loops++;
    writer_axes(w, mask, "c", type, "        ");
    put_elements(w, p, IN_MEMORY, "        ");
    buffer_puts(&w->body, "    }\n");
    memcpy(w->kept, kept, sizeof kept);
}

static void put_row_results(Writer *w, const char *guard)
{
    for (int r = 0; r < w->k->n_roots; r++) {
        int step = w->k->root[r].step;
        if (in_columns(w, step)) continue;
        buffer_printf(&w->body, "    if (lane == 0%s) %s[", guard,
                      kernel_tensor(w->k, w->k->root[r].node, 1));
        writer_index(w, &w->k->root[r].at);
        buffer_printf(&w->body, "] = (%s)t%d;\n",
                      dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), step);
    }
}

static void put_rows_head(Writer *w)
{
    const char *rows = writer_size(w, writer_product(w, w->k->rows));
    if (w->lanes > 32 || w->strip >= 0)
        buffer_printf(&w->body, "    __shared__ double shared[%d];\n",
                      (w->strip >= 0 ? 32 * w->lanes : 32) * fold_words(w));
    else
        buffer_puts(&w->body, "    double *shared = nullptr;\n");
    if (w->strip >= 0) {
        const char *n = writer_size(w, w->k->axes.size[w->strip]),
                   *name = w->k->axes.name[w->strip];
        buffer_printf(&w->body,
                      "    const int lane = threadIdx.y;\n"
                      "    const %s strips = (%s + 31) / 32;\n"
                      "    const long long own = blockIdx.x %% strips * 32LL + threadIdx.x;\n"
                      "    const long long %s = own < %s ? own : %s - 1;\n"
                      "    const bool inside = own < %s;\n",
                      w->wide ? "long long" : "unsigned", n, name, n, n, n);
        writer_axes(w, w->k->rows & ~(1u << w->strip), "(blockIdx.x / strips)", "long long",
                    "    ");
        return;
    }
    int a_block = w->lanes > 32 ? 1 : w->block / w->lanes;
    if (a_block == 1)
        buffer_puts(&w->body,
                    "    const int lane = threadIdx.x;\n    const long long row = blockIdx.x;\n"
                    "    const bool inside = true;\n");
    else
        buffer_printf(&w->body,
                      "    const int lane = threadIdx.x %% %d;\n"
                      "    const long long own = blockIdx.x * %dLL + threadIdx.x / %d;\n"
                      "    const long long row = own < %s ? own : %s - 1;\n    const bool inside = "
                      "own < %s;\n",
                      w->lanes, a_block, w->lanes, rows, rows, rows);
    writer_axes(w, w->k->rows, "row", "long long", "    ");
}

/* The columns of a block that folds a part of its row. */
static void put_part(Writer *w)
{
    const int parts = w->k->nodes->node[w->k->root[0].node].parts;
    const char *cols = writer_size(w, writer_product(w, w->columns));
    buffer_printf(&w->body,
                  "    const long long chunk = (%s + %dLL - 1) / %dLL * %d, first = %s * chunk;\n"
                  "    const long long end = first + chunk < %s ? first + chunk : %s;\n",
                  cols, parts * PART_UNIT, parts * PART_UNIT, PART_UNIT, w->k->axes.name[w->part],
                  cols, cols);
}

void writer_kept(Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (w->kept[i]) {
            writer_help(w, HELP_PACK);
            buffer_printf(&w->body, "    Pack<%s, V> keep%d[%d];\n", pack_type(w, i), i, w->keep);
        }
}

static void put_rows(Writer *w)
{
    int most = writer_passes(w), stores = 0;
    put_rows_head(w);
    if (w->part >= 0) put_part(w);
    writer_kept(w);
    writer_row_steps(w, 0);
    for (int level = 1; level <= most; level++) {
        fold_put_level(w, level);
        writer_row_steps(w, level);
    }
    for (int r = 0; r < w->k->n_roots; r++) stores |= in_columns(w, w->k->root[r].step);
    if (w->k->scan >= 0) {
        scan_put(w);
    } else if (stores) {
        buffer_puts(&w->body, "    if (!inside) return;\n");
        writer_loop(w, &(Pass){0, 0});
    }
    put_row_results(w, stores ? "" : " && inside");
}

/* 1: all rows read the same elements of a tensor. */
static int shares_columns(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++) {
        const unsigned axes = index_axes(&w->k->step[i].at);
        if (writer_is_packed(w, i) && axes & w->columns && !(axes & w->k->rows)) return 1;
    }
    return 0;
}

/* The row and the piece of it that a block takes. Neighbouring blocks take pieces that lie side by side;
 * where rows share elements, the same piece of other rows, so that these stay near. */
static void put_slice_head(Writer *w)
{
    const char *rows = writer_size(w, writer_product(w, w->k->rows));
    buffer_printf(&w->body, "    const unsigned pieces = gridDim.x / (unsigned)%s;\n", rows);
    if (shares_columns(w))
        buffer_printf(&w->body,
                      "    const unsigned row = blockIdx.x %% (unsigned)%s, piece = blockIdx.x / "
                      "(unsigned)%s;\n",
                      rows, rows);
    else
        buffer_puts(&w->body,
                    "    const unsigned row = blockIdx.x / pieces, piece = blockIdx.x % pieces;\n");
    writer_axes(w, w->k->rows, "row", "long long", "    ");
}

static void put_flat(Writer *w)
{
    const char *type = w->slices && !w->wide ? "int" : "long long";
    char n[32];
    snprintf(n, sizeof n, "%s", writer_size(w, writer_product(w, w->columns)));
    if (w->slices) put_slice_head(w);
    writer_row_steps(w, 0);
    if (!w->columns) {
        buffer_puts(&w->body, "    const int lane = threadIdx.x;\n");
        put_row_results(w, "");
        return;
    }
    char at[96];
    int span = w->block * w->items;
    snprintf(at, sizeof at, "first + (u * %d + (int)threadIdx.x) * V", w->block);
    buffer_printf(&w->body,
                  "    for (%s first = %s * %dLL * V; first < %s; first += %s * %dLL * V) {\n",
                  type, w->slices ? "piece" : "blockIdx.x", span, n,
                  w->slices ? "pieces" : "gridDim.x", span);
    Strip whole = {type, "i", at, NULL, "u", w->items, w->columns}, rest = whole;
    rest.end = n;
    if (w->items > 1) {
        buffer_printf(&w->body, "        if (first + %dLL * V <= %s) {\n", span, n);
        put_strip(w, &(Pass){0, 0}, &whole, IN_BATCH, "            ");
        buffer_puts(&w->body, "            continue;\n        }\n");
    }
    put_strip(w, &(Pass){0, 0}, &rest, IN_BATCH, "        ");
    buffer_puts(&w->body, "    }\n");
}

/* ---- the whole ---- */

void kernel_put_parameters(const Kernel *k, int types, int wide, Buffer *to)
{
    int n = 0;
    for (int i = 0; i < k->n_tensors; i++) {
        const Node *x = &k->nodes->node[k->tensor[i].node];
        if (types)
            buffer_printf(to, "%s%s%s *%s%s", n++ ? ", " : "", k->tensor[i].written ? "" : "const ",
                          dtype_ctype(x->dtype), k->nodes->plain ? "" : "__restrict__ ",
                          k->tensor[i].name);
        else
            buffer_printf(to, "%s%s", n++ ? ", " : "", k->tensor[i].name);
    }
    for (int i = 0; i < k->n_sizes; i++)
        buffer_printf(to, types ? "%s%s %s" : "%s%.0s%s", n++ ? ", " : "",
                      wide ? "long long" : "int", k->size[i].name);
}

int kernel_put_arguments(const Kernel *k, Buffer *to, Error *err)
{
    char text[SIZE_TEXT];
    int n = 0;
    for (int i = 0; i < k->n_tensors; i++)
        buffer_printf(to, "%s%s", n++ ? ", " : "", k->nodes->node[k->tensor[i].node].name);
    for (int i = 0; i < k->n_sizes; i++) {
        if (size_text(k->nodes->sizes, k->size[i].size, text, err)) return -1;
        buffer_printf(to, "%s%s", n++ ? ", " : "", text);
    }
    return 0;
}

static int put_launch(Writer *w, Error *err)
{
    char rows[SIZE_TEXT];
    Buffer *p = w->t->plan;
    Kernel *k = w->k;
    Size grid = writer_product(w, k->has_folds ? k->rows : w->columns);
    if (size_text(k->nodes->sizes, grid, rows, err)) return -1;
    buffer_printf(p, "//@ launch kernel_%d<<<", w->number);
    if (w->turned || w->alone) {
        if (w->turned ? turned_launch(w, p, err) : alone_launch(w, p, err)) return -1;
    } else if (w->strip >= 0) {
        Size n = k->axes.size[w->strip], others = writer_product(w, k->rows & ~(1u << w->strip));
        char strip[SIZE_TEXT];
        if (size_text(k->nodes->sizes, n, strip, err) ||
            size_text(k->nodes->sizes, others, rows, err))
            return -1;
        buffer_printf(p, "ceil_div(%s, 32) * (%s), dim3(32, %d)", strip, rows, w->lanes);
    } else if (w->slices) {
        char cols[SIZE_TEXT];
        if (size_text(k->nodes->sizes, writer_product(w, w->k->rows), rows, err) ||
            size_text(k->nodes->sizes, grid, cols, err))
            return -1;
        buffer_printf(p, "(%s) * ceil_div(%s, %d), %d", rows, cols, w->block * w->vec * w->items,
                      w->block);
    } else if (!k->has_folds) {
        buffer_printf(p, "ceil_div(%s, %d), %d", rows, w->block * w->vec * w->items, w->block);
    } else if (w->lanes > 32) {
        buffer_printf(p, "%s, %d", rows, w->lanes);
    } else {
        buffer_printf(p, "ceil_div(%s, %d), %d", rows, w->block / w->lanes, w->block);
    }
    buffer_puts(p, ">>>(");
    if (kernel_put_arguments(k, p, err)) return -1;
    buffer_puts(p, ")\n");
    return 0;
}

/* 1: the kernel's body gets the size as a number where it is the timed one: places are divided by it, loops
 * end at it, and elements lie that far apart. What counts all rows or elements stays a parameter. */
static int is_number_here(const Writer *w, const KernelSize *s)
{
    const unsigned all = w->k->has_folds || w->slices ? w->k->rows : w->columns;
    return !size_same(s->size, writer_product(w, all)) && s->size.at[0] < INT32_MAX;
}

/* "cols == 64 && rows == 7", or the arguments of the body with these numbers. Returns how many there are. */
static int put_numbers(const Writer *w, int condition, Buffer *to)
{
    int n = 0;
    for (int i = 0; i < w->k->n_tensors && !condition; i++)
        buffer_printf(to, "%s%s", i ? ", " : "", w->k->tensor[i].name);
    for (int i = 0; i < w->k->n_sizes; i++) {
        const KernelSize *s = &w->k->size[i];
        const int number = is_number_here(w, s);
        if (condition && number)
            buffer_printf(to, "%s%s == %lld", n ? " && " : "", s->name, (long long)s->size.at[0]);
        else if (!condition && number)
            buffer_printf(to, ", %lld", (long long)s->size.at[0]);
        else if (!condition)
            buffer_printf(to, ", %s", s->name);
        n += number;
    }
    return n;
}

/* The kernel, which calls its body: with the timed sizes as numbers where they are these, so that the
 * compiler divides by them and knows the ends of loops; else in vectors where `guard` allows these. */
static void put_calls(const Writer *w, int threads, const PlainParts *p, Buffer *s)
{
    Buffer sizes, numbers;
    /* Parts of a row run at once, three to a multiprocessor (trace.c). */
    const char *least = w->part >= 0 && w->strip < 0 && threads == 512 ? ", 3" : "";
    buffer_init(&sizes, 4096);
    buffer_init(&numbers, 1 << 16);
    const int any = w->t->n_seen < MOST_NUMBERED && put_numbers(w, 1, &sizes);
    put_numbers(w, 0, &numbers);
    buffer_printf(s,
                  "template <int V>\n__device__ __forceinline__ void body_@(%s)\n{\n%s}\n\n"
                  "extern \"C\" __global__ void __launch_bounds__(%d%s) kernel_@(%s)\n{\n",
                  p->types, w->body.data, threads, least, p->types);
    if (any && *p->guard) buffer_printf(&sizes, " && (%s) %% %d == 0", p->guard, w->vec);
    if (any)
        buffer_printf(s, "    if (%s) {\n        body_@<%d>(%s);\n        return;\n    }\n",
                      sizes.data, w->vec, numbers.data);
    if (*p->guard)
        buffer_printf(
            s, "    if ((%s) %% %d != 0) {\n        body_@<1>(%s);\n        return;\n    }\n",
            p->guard, w->vec, p->names);
    buffer_printf(s, "    body_@<%d>(%s);\n}\n\n", w->vec, p->names);
    buffer_release(&sizes);
    buffer_release(&numbers);
}

void writer_source(Writer *w, int threads)
{
    Buffer s, guard, types, names;
    buffer_init(&s, 1 << 20);
    buffer_init(&guard, 4096);
    buffer_init(&types, 1 << 16);
    buffer_init(&names, 1 << 16);
    if (w->vec > 1) writer_guard(w, &guard);
    if (w->k->nodes->plain) plain_order(w->k);
    kernel_put_parameters(w->k, 1, w->wide, &types);
    kernel_put_parameters(w->k, 0, w->wide, &names);
    const PlainParts parts = {guard.data, types.data, names.data};
    if (w->k->nodes->plain)
        plain_source(w, &s, &parts);
    else
        put_calls(w, threads, &parts, &s);
    w->failed |= s.full || types.full || names.full;
    if (!w->failed) w->number = kernel_put_source(w->t, s.data);
    buffer_release(&s);
    buffer_release(&guard);
    buffer_release(&types);
    buffer_release(&names);
}

int kernel_write(Kernel *k, KernelText *t, Error *err)
{
    unsigned char kept[KERNEL_STEPS] = {0}, defined[KERNEL_STEPS] = {0};
    Writer w = {.k = k, .t = t, .err = err, .kept = kept, .defined = defined, .lanes = 1};
    buffer_init(&w.body, 1 << 20);
    k->scope.of = k, k->scope.axes = &k->axes;
    writer_schedule(&w);
    if (t->estimate) estimate_add(t->estimate, &w);
    if (w.turned)
        turned_put(&w);
    else if (w.alone)
        alone_put(&w);
    else if (k->has_folds)
        put_rows(&w);
    else
        put_flat(&w);
    if (w.body.full) w.failed = 1, error_set(err, ERROR_UNSUPPORTED, "a kernel of too much text");
    if (!w.failed) writer_source(&w, writer_threads(&w));
    if (!w.failed && put_launch(&w, err)) w.failed = 1;
    buffer_release(&w.body);
    return w.failed ? -1 : 0;
}

/* ---- for other kernels' texts ---- */

void writer_elements(Writer *w, const char *indent)
{
    put_elements(w, &(Pass){0, 0}, IN_MEMORY, indent);
}
