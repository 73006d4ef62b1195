/* How the dimensions of a tensor become rows and columns. A graph is read with each split, and the one that
 * keeps fewest operators is used. An element of a row lies `inner` elements behind the one before it; with
 * every split the place of an element in C order is its place in memory. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/teacher/formula/formula_read.h"

static int64_t times(const int64_t *size, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++) all *= size[i];
    return all;
}

/* The text of a product of sizes, without ones; first (NULL: none) is a factor that is a text already. */
static int product_text(FormulaReader *r, const char *first, const int64_t *size, int n,
                        char out[FORMULA_TEXT], Error *err)
{
    char one[FORMULA_TEXT];
    size_t len = first && strcmp(first, "1") ? (size_t)snprintf(out, FORMULA_TEXT, "%s", first) : 0;
    for (int i = 0; i < n; i++) {
        if (size[i] == 1) continue;
        if (formula_size_text(r, size[i], one, err)) return -1;
        len += (size_t)snprintf(out + len, FORMULA_TEXT - len, "%s%s", len ? " * " : "", one);
        if (len >= FORMULA_TEXT)
            return error_set(err, ERROR_UNSUPPORTED, "the text of a size is too long");
    }
    if (!len) snprintf(out, FORMULA_TEXT, "1");
    return 0;
}

int formula_cols(const FormulaReader *r, int rank)
{
    if (r->split == SPLIT_GROUPS && rank > 1) return rank - 1;
    return r->split == SPLIT_PLANES && (rank == 4 || rank == 5) ? rank - 2 : rank ? 1 : 0;
}

/* The columns are dimension 1, or it is a part of the rows and a part of the columns. */
static int splits_channels(const FormulaReader *r, int rank)
{
    return (r->split == SPLIT_GROUPS && rank > 1) || (r->split == SPLIT_CHANNELS && rank > 2);
}

int formula_is_over(const FormulaReader *r, int rank, unsigned mask)
{
    int cols = formula_cols(r, rank);
    if (r->split == SPLIT_CHANNELS && rank > 2) return mask == 2;
    if (r->split == SPLIT_GROUPS && rank > 1 && r->groups > 1) return 0;
    return mask == ((1u << cols) - 1) << (rank - cols);
}

/* ---- spaces ---- */

/* A row is a group of channels of one image; or a place of one image, over the channels; or what the last
 * dimensions are not. */
static int measure_space(const FormulaReader *r, const OpTensor *t, FormulaSpace *s, Error *err)
{
    int cols = formula_cols(r, t->rank), rows = t->rank - cols;
    int64_t plane = t->rank > 2 ? times(t->size + 2, t->rank - 2) : 1;
    *s = (FormulaSpace){.n_inner = 1};
    if (!splits_channels(r, t->rank)) {
        s->n_rows = times(t->size, rows);
        s->n_cols = times(t->size + rows, cols);
    } else if (r->split == SPLIT_CHANNELS) {
        s->n_rows = t->size[0] * plane;
        s->n_cols = t->size[1];
        s->n_inner = plane;
    } else if (t->size[1] % r->groups) {
        return error_set(err, ERROR_UNSUPPORTED, "dimension 1 has no such groups");
    } else {
        s->n_rows = t->size[0] * r->groups;
        s->n_cols = t->size[1] / r->groups * plane;
        s->n_plane = plane;
    }
    return 0;
}

static int group_texts(FormulaReader *r, const OpTensor *t, FormulaSpace *s, Error *err)
{
    char part[2 * FORMULA_TEXT], count[FORMULA_TEXT], *end;
    if (formula_size_text(r, t->size[1], s->channels, err)) return -1;
    if (strtoll(s->channels, &end, 10) == t->size[1] && !*end)
        snprintf(part, sizeof part, "%lld", (long long)(t->size[1] / r->groups));
    else if (r->groups > 1)
        snprintf(part, sizeof part, "(%s / %lld)", s->channels, (long long)r->groups);
    else
        snprintf(part, sizeof part, "%s", s->channels);
    if (strlen(part) >= FORMULA_TEXT) return error_set(err, ERROR_UNSUPPORTED, "a long size");
    snprintf(count, sizeof count, "%lld", (long long)r->groups);
    return -(product_text(r, count, t->size, 1, s->rows, err) ||
             product_text(r, part, t->size + 2, t->rank - 2, s->cols, err) ||
             product_text(r, NULL, t->size + 2, t->rank - 2, s->plane, err));
}

static int space_texts(FormulaReader *r, const OpTensor *t, FormulaSpace *s, Error *err)
{
    int cols = formula_cols(r, t->rank), rows = t->rank - cols;
    if (s->n_plane) return group_texts(r, t, s, err);
    if (splits_channels(r, t->rank))
        return -(product_text(r, NULL, t->size + 2, t->rank - 2, s->inner, err) ||
                 product_text(r, s->inner, t->size, 1, s->rows, err) ||
                 formula_size_text(r, t->size[1], s->cols, err));
    return -(product_text(r, NULL, t->size, rows, s->rows, err) ||
             product_text(r, NULL, t->size + rows, cols, s->cols, err) ||
             (cols > 1 && formula_size_text(r, t->size[1], s->channels, err)));
}

int formula_space(FormulaReader *r, const OpTensor *t, Error *err)
{
    Formula *f = r->f;
    FormulaSpace s;
    if (measure_space(r, t, &s, err)) return -1;
    for (int i = 0; i < f->n_spaces; i++) {
        FormulaSpace *o = &f->space[i];
        if (o->n_rows != s.n_rows || o->n_cols != s.n_cols || o->n_inner != s.n_inner ||
            o->n_plane != s.n_plane)
            continue;
        if (formula_cols(r, t->rank) < 2 || o->channels[0]) return i;
        return formula_size_text(r, t->size[1], o->channels, err) ? -1 : i;
    }
    if (f->n_spaces == FORMULA_SPACES || t->rank > 5)
        return error_set(err, ERROR_UNSUPPORTED, "the graph has too many shapes");
    if (space_texts(r, t, &s, err)) return -1;
    f->space[f->n_spaces] = s;
    return f->n_spaces++;
}

/* ---- how an operand lies in a space ---- */

/* The stride of a group of dimensions that lie as one: 0 where all are broadcast, -1 when they do not. */
static int64_t dense(const int64_t *size, const int64_t *stride, int n)
{
    int64_t step = 0, next = 0;
    int zero = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (size[i] == 1) continue;
        if (!stride[i]) {
            zero = 1;
            continue;
        }
        if (next && stride[i] != next) return -1;
        if (!next) step = stride[i];
        next = stride[i] * size[i];
    }
    return zero && step ? -1 : step;
}

/* Of `rank` dimensions, the last `cols` of which are the columns. */
static int plain_domain(const int64_t *size, const int64_t *stride, int rank, int cols, Domain *out)
{
    int rows = rank - cols;
    int64_t n_cols = times(size + rows, cols), n_rows = times(size, rows);
    int64_t r = dense(size, stride, rows), c = dense(size + rows, stride + rows, cols);
    if (c == 1 && (r == n_cols || n_rows == 1))
        *out = PER_ELEMENT;
    else if (c == 1 && r == 0)
        *out = PER_COL;
    else if (c == 0 && r == 1)
        *out = PER_ROW;
    else if (c == 0 && r == 0)
        *out = PER_TASK;
    else if (r == 1 && c == n_rows && rank == 2)
        *out = PER_TRANSPOSED;
    else if (cols > 1 && c == 0 && !stride[0] && stride[1] == 1)
        *out = PER_CHANNEL;
    else
        return -1;
    return 0;
}

/* Where dimension 1 is the columns, or a part of them. */
static int channel_domain(const FormulaReader *r, const int64_t *size, const int64_t *stride,
                          int rank, Domain *out)
{
    int64_t size2[OP_MAX_RANK], stride2[OP_MAX_RANK], all = dense(size, stride, rank);
    int groups = r->split == SPLIT_GROUPS, n = 0;
    for (int d = 0; d < rank; d++) /* the others */
        if (d != 1) size2[n] = size[d], stride2[n++] = stride[d];
    int64_t channel = size[1] == 1 ? 0 : stride[1], others = dense(size2, stride2, n);
    int64_t first = size[0] == 1 ? 0 : stride[0], rest = dense(size + 1, stride + 1, rank - 1);
    if (all == 1)
        *out = PER_ELEMENT;
    else if (all == 0)
        *out = PER_TASK;
    else if (channel == 1 && others == 0)
        *out = groups ? PER_CHANNEL : PER_COL;
    else if (!groups && !channel && others == 1)
        *out = PER_ROW;
    else if (groups && r->groups == 1 && !first && rest == 1)
        *out = PER_COL;
    else if (groups && r->groups == 1 && first == 1 && !rest)
        *out = PER_ROW;
    else
        return -1;
    return 0;
}

int formula_domain(const FormulaReader *r, const OpTensor *t, const OpTensor *like, Domain *out)
{
    int64_t stride[OP_MAX_RANK] = {0};
    int rank = like->rank;
    if (t->rank > rank || t->offset) return -1;
    for (int i = 0; i < t->rank; i++)
        stride[rank - t->rank + i] = t->size[i] == 1 ? 0 : t->stride[i];
    if (splits_channels(r, rank)) return channel_domain(r, like->size, stride, rank, out);
    return plain_domain(like->size, stride, rank, formula_cols(r, rank), out);
}

int formula_channel(FormulaReader *r, int value, const OpTensor *like, int space, Error *err)
{
    OpTensor *t = &r->b->values[value].tensor, kept = *t;
    int split = splits_channels(r, like->rank) || formula_cols(r, like->rank) > 1;
    if (split && t->rank == 1) {
        t->rank = like->rank;
        for (int d = 0; d < t->rank; d++) {
            t->size[d] = d == 1 ? kept.size[0] : 1;
            t->stride[d] = d == 1 ? kept.stride[0] : 0;
        }
    }
    int at = formula_operand(r, value, like, space, err);
    *t = kept;
    return at;
}

/* ---- which splits a graph is read with ---- */

/* The number of groups of the first group norm, where it is a number; 1: all of the columns of a norm or a
 * fold over several dimensions; 0: there is none of these. */
static int64_t groups_of(const FormulaReader *r)
{
    int64_t found = 0;
    for (int node = 0; node < r->b->graph->n_nodes && found < 1; node++) {
        const OpCall *c = &r->b->calls[node].call;
        const OpLine *line = &r->b->graph->line[node];
        if (!r->b->calls[node].live) continue;
        if (!strncmp(c->op->name, "aten.group_norm", 15) && line->n_args > 1 &&
            isdigit((unsigned char)line->value[1].p[0]))
            return c->arg[1].integer[0];
        const OpValue *dims = c->n_args > 1 && c->arg[1].kind == OP_INTS ? &c->arg[1] : NULL;
        if (dims && dims->n > 1 && c->n_tensors && dims->n == c->tensor[0].rank - 1) found = 1;
    }
    return found;
}

int formula_splits(FormulaReader *r, Split split)
{
    r->split = split;
    r->groups = 1;
    if (split == SPLIT_GROUPS) return (r->groups = groups_of(r)) > 0;
    if (split != SPLIT_CHANNELS) return 1;
    for (int node = 0; node < r->b->graph->n_nodes; node++) {
        const OpCall *c = &r->b->calls[node].call;
        const OpValue *dim = c->n_args > 1 ? &c->arg[1] : NULL;
        if (!r->b->calls[node].live || !c->n_tensors || c->tensor[0].rank < 3 || !dim) continue;
        int one = dim->kind == OP_INT || (dim->kind == OP_INTS && dim->n == 1);
        if (one && (dim->integer[0] == 1 || dim->integer[0] + c->tensor[0].rank == 1)) return 1;
    }
    return 0;
}
