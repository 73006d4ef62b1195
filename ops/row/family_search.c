/* Places of values in rows of boundaries in order, by halving, one thread a value as in eager PyTorch.
 * Boundaries of other precision than double are compared as what their type holds. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_search_cu, "ops/row/family_search.cu")

enum { SEARCH_THREADS = 1024 };

/* One row of boundaries for all values, or one for each row of them. */
typedef struct {
    const OpTensor *x, *bounds;
    int x_index, bounds_index, right, alone;
    int64_t n, row; /* boundaries, and values, of a row */
} Search;

static int flag(const OpCall *c, const char *name)
{
    return c->arg[op_argument(c->op, name)].integer[0] != 0;
}

static int search_of(const OpCall *c, Search *s, Error *err)
{
    int buckets = op_argument(c->op, "boundaries") == 1, side = op_argument(c->op, "side"),
        sorter = op_argument(c->op, "sorter");
    *s = (Search){.x_index = (int)c->arg[buckets ? 0 : 1].integer[0],
                  .bounds_index = (int)c->arg[buckets ? 1 : 0].integer[0]};
    s->x = &c->tensor[s->x_index];
    s->bounds = &c->tensor[s->bounds_index];
    s->right = c->arg[op_argument(c->op, "right")].kind != OP_NONE && flag(c, "right");
    if (side >= 0 && c->arg[side].kind == OP_STRING) s->right = !strcmp(c->arg[side].text, "right");
    if (sorter >= 0 && c->arg[sorter].kind != OP_NONE)
        return error_set(err, ERROR_UNSUPPORTED, "a sorter");
    if (s->x->dtype != s->bounds->dtype || s->x->dtype == DTYPE_B8)
        return error_set(err, ERROR_UNSUPPORTED, "expected one type of numbers, found %s and %s",
                         dtype_name(s->x->dtype), dtype_name(s->bounds->dtype));
    int rank = s->bounds->rank;
    s->alone = rank == 1;
    if (rank < 1 || (!s->alone && rank != s->x->rank))
        return error_set(err, ERROR_INVALID, "boundaries: expected 1 or %d dimensions, found %d",
                         s->x->rank, rank);
    for (int d = 0; d < rank - 1; d++)
        if (s->x->size[d] != s->bounds->size[d])
            return error_set(err, ERROR_INVALID, "boundaries: expected a size of %lld, found %lld",
                             (long long)s->x->size[d], (long long)s->bounds->size[d]);
    s->n = s->bounds->size[rank - 1];
    s->row = s->x->rank ? s->x->size[s->x->rank - 1] : 1;
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Search s;
    if (search_of(c, &s, err)) return -1;
    return op_result(c, flag(c, "out_int32") ? DTYPE_I32 : DTYPE_I64, s.x->rank, s.x->size, err);
}

static double held(Dtype d, double v)
{
    return d == DTYPE_F64 || !dtype_is_float(d) ? v : (double)(float)v;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Search s;
    if (search_of(c, &s, err)) return -1;
    int64_t n = op_elements(s.x);
#pragma omp parallel for if (n >= 1 << 14)
    for (int64_t i = 0; i < n; i++) {
        const double *bounds = in[s.bounds_index] + (s.alone ? 0 : i / s.row * s.n);
        double v = held(s.x->dtype, in[s.x_index][i]);
        int64_t from = 0, to = s.n;
        while (from < to) {
            int64_t at = from + (to - from) / 2;
            double b = held(s.x->dtype, bounds[at]);
            if (s.right ? !(b > v) : !(b >= v))
                from = at + 1;
            else
                to = at;
        }
        out[0][i] = (double)from;
    }
    return 0;
}

/* Some boundaries are compared with each value; which ones, the values say. */
static void cost(const OpCall *c, OpCost *out)
{
    Search s;
    Error err;
    if (search_of(c, &s, &err)) return;
    out->bytes -= op_bytes(s.bounds);
    out->flops = (double)op_elements(s.x);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    char name[16], place[2][48], operands[200];
    Search s;
    if (search_of(c, &s, err)) return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "x%d", i ? s.bounds_index : s.x_index);
        if (text_dense(out, name, i ? s.bounds : s.x, place[i], sizeof place[i], err)) return -1;
    }
    int64_t n = op_elements(s.x);
    int threads = n < 1                ? 1
                  : n < SEARCH_THREADS ? (int)n
                                       : SEARCH_THREADS,
        same = !strcmp(place[0], place[1]) || s.x_index == s.bounds_index;
    int len = snprintf(operands, sizeof operands, "%.*s", (int)strcspn(place[0], " "), place[0]);
    if (!same || strncmp(place[0], place[1], strcspn(place[0], " ")))
        len += snprintf(operands + len, sizeof operands - (size_t)len, " %.*s",
                        (int)strcspn(place[1], " "), place[1]);
    snprintf(operands + len, sizeof operands - (size_t)len, " y0 n:%lld row:%lld bounds:%lld",
             (long long)n, (long long)(s.alone ? n + 1 : s.row), (long long)s.n);
    if (!text_begin(out, &(TextHead){"search", operands, (n + threads - 1) / threads, threads},
                    err))
        return -1;
    part_fill(out->source, op_search_cu, "search", "type=%s;stored=%s;all=%s;value=%s;compare=%s",
              text_type(s.x->dtype), dtype_ctype(s.x->dtype), place[1], place[0],
              s.right ? ">" : ">=");
    return text_end(out, err);
}

static const Op table[] = {
    {"aten.bucketize.Tensor",
     "Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False", infer, reference,
     plain, cost, 0, NULL, NULL},
    {"aten.searchsorted.Tensor",
     "Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
     "str? side=None, Tensor? sorter=None",
     infer, reference, plain, cost, 0, NULL, NULL},
};

const OpFamily search_family = {"search", table, sizeof table / sizeof *table};
