/* Views by strides. The reference of a view is the same view of the contiguous logical elements. */
#include "ops/op_strided.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_element.h"
#include "ops/op_text.h"

/* ATen's computeStride: dimensions of x that lie one behind the other are a chunk, and the new
 * dimensions divide the chunks. */
int strided_reshape(const OpTensor *x, int rank, const int64_t *size, OpTensor *y)
{
    OpTensor v = {.dtype = x->dtype, .rank = rank, .offset = x->offset};
    int d = rank - 1;
    memcpy(v.size, size, (size_t)rank * sizeof *size);
    op_contiguous(&v);
    v.offset = x->offset;
    if (op_elements(x) == 0 || !x->rank) {
        if (rank == x->rank && !memcmp(size, x->size, (size_t)rank * sizeof *size)) v = *x;
        *y = v;
        return 0;
    }
    int64_t base = x->stride[x->rank - 1], had = 1, have = 1;
    for (int k = x->rank - 1; k >= 0; k--) {
        had *= x->size[k];
        if (k && (x->size[k - 1] == 1 || x->stride[k - 1] == had * base)) continue;
        for (; d >= 0 && (have < had || size[d] == 1); d--) {
            v.stride[d] = have * base;
            have *= size[d];
        }
        if (have != had) return 1;
        if (k) base = x->stride[k - 1];
        had = have = 1;
    }
    if (d != -1) return 1;
    *y = v;
    return 0;
}

int strided_sizes(const OpTensor *x, const OpValue *list, int64_t *size, Error *err)
{
    int64_t n = 1, all = op_elements(x);
    int free_at = -1;
    if (list->n > OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank of at most %d, found %d", OP_MAX_RANK,
                         list->n);
    for (int d = 0; d < list->n; d++) {
        size[d] = list->integer[d];
        if (size[d] == -1 && free_at < 0) {
            free_at = d;
            continue;
        }
        if (size[d] < 0 || (size[d] > 1 && n > (INT64_C(1) << 48) / size[d]))
            return error_set(err, ERROR_INVALID, "size %lld of dimension %d cannot be",
                             (long long)size[d], d);
        n *= size[d];
    }
    if (free_at >= 0 && (!n || all % n))
        return error_set(err, ERROR_INVALID, "%lld elements have no shape with a factor of %lld",
                         (long long)all, (long long)n);
    if (free_at >= 0) size[free_at] = all / n;
    if (free_at < 0 && n != all)
        return error_set(err, ERROR_INVALID, "expected a shape of %lld elements, found %lld",
                         (long long)all, (long long)n);
    return 0;
}

int strided_infer(OpCall *c, Error *err)
{
    const StridedView *s = c->op->detail;
    const OpTensor *x = op_tensor(c, 0);
    OpTensor y = *x;
    int rc = s->shape(c, &y, err);
    if (rc < 0) return -1;
    if (s->kind == STRIDED_COPY || rc) return op_result(c, y.dtype, y.rank, y.size, err);
    return op_view(c, (int)c->arg[0].integer[0], &y, err);
}

/* The result as a view of the contiguous input: a copy in C order is the input itself. */
static int logical_view(const OpCall *c, const StridedView *s, OpTensor *v, Error *err)
{
    OpTensor x = *v;
    return s->shape(c, v, err) == 1 ? *v = x, 0 : 0;
}

/* Numbers change: a float is made a whole number or a bool, or the type has few numbers. */
static int converts(const OpCall *c, int r, int of)
{
    Dtype to = c->result[r].dtype, from = c->tensor[of].dtype;
    return to != from && (dtype_is_float8(to) || dtype_is_small(to) || to == DTYPE_B8 ||
                          (!dtype_is_float(to) && dtype_is_float(from)));
}

static double converted(const OpCall *c, int r, double x)
{
    Dtype to = c->result[r].dtype;
    if (to == DTYPE_B8) return x != 0;
    if (!dtype_is_float(to)) x = fabs(x) < 0x1p63 ? (double)(int64_t)x : 0;
    return dtype_is_float8(to) || dtype_is_small(to) ? dtype_rounded(to, x) : x;
}

int strided_reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    OpCall *k = memory_alloc(sizeof *k);
    *k = *c;
    for (int i = 0; i < k->n_tensors; i++) op_contiguous(&k->tensor[i]);
    const StridedView *s = c->op->detail;
    int rc = op_infer(k, err);
    for (int r = 0; r < k->n_results && !rc; r++) {
        OpTensor v = k->result[r];
        int of = k->view_of[r];
        if (of < 0) {
            of = (int)c->arg[0].integer[0];
            v = k->tensor[of];
            rc = logical_view(k, s, &v, err);
        }
        walk_gather(&v, in[of], out[r]);
        for (int64_t i = 0; converts(c, r, of) && i < op_elements(&v); i++)
            out[r][i] = converted(c, r, out[r][i]);
    }
    free(k);
    return rc;
}

/* Result 0 as a view of its contiguous input, whose number is returned. */
static int element_view(const OpCall *c, OpTensor *v)
{
    Error ignored;
    OpCall *k = memory_alloc(sizeof *k);
    int of = (int)c->arg[0].integer[0];
    *k = *c;
    for (int i = 0; i < k->n_tensors; i++) op_contiguous(&k->tensor[i]);
    *v = k->tensor[of];
    logical_view(k, c->op->detail, v, &ignored);
    free(k);
    return of;
}

static void open_one(OpWalk *w, const OpTensor *t);

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    OpTensor v;
    OpWalk w;
    int of = element_view(c, &v);
    open_one(&w, &v);
    for (int64_t k = 0; k < s->n; k++) {
        int64_t at[WALK_OPERANDS];
        walk_place(&w, s->at[k], at);
        out->add(out->of, of, v.offset + at[0], 1, 1);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    OpTensor v;
    OpWalk w;
    int of = element_view(c, &v);
    open_one(&w, &v);
    for (int64_t k = 0; k < s->n; k++) {
        int64_t at[WALK_OPERANDS];
        walk_place(&w, s->at[k], at);
        y[k] = in[of][v.offset + at[0]];
        if (converts(c, 0, of)) y[k] = converted(c, 0, y[k]);
    }
}

const OpElements strided_elements = {element_needs, element_compute, NULL, NULL};

int strided_plain(const OpCall *c, OpPlain *out, Error *err)
{
    const StridedView *s = c->op->detail;
    const OpTensor *y = &c->result[0];
    OpTensor v = *op_tensor(c, 0);
    const Dtype from = v.dtype;
    int64_t x = c->arg[0].integer[0];
    if (logical_view(c, s, &v, err)) return -1;
    char operands[16];
    snprintf(operands, sizeof operands, "x%lld y0", (long long)x);
    if (!text_walk(out, "copy", operands, op_elements(y), err)) return -1;
    int rounds = dtype_is_float8(y->dtype) && from != y->dtype;
    if (rounds) /* the type's own conversion stops at the largest number, PyTorch's overflows */
        buffer_printf(out->source, "    y0[i].__x = __nv_cvt_float_to_fp8((float)x%lld[",
                      (long long)x);
    else
        buffer_printf(out->source, "    y0[i] = (%s)%sx%lld[", dtype_ctype(y->dtype),
                      text_cast(from, y->dtype), (long long)x);
    text_index(out->source, &v, v.rank, v.size, "i");
    if (rounds)
        buffer_printf(out->source, "], __NV_NOSAT, __NV_%s);\n",
                      y->dtype == DTYPE_E4M3 ? "E4M3" : "E5M2");
    else
        buffer_puts(out->source, "];\n");
    return text_each_end(out, err);
}

/* ---- walks: dimensions that every operand moves through evenly are merged, rows cut into runs ---- */

enum { PARALLEL = 1 << 16 };

static int merges(const OpWalk *w, int last, int64_t size, const int64_t *step)
{
    for (int i = 0; i < w->n; i++)
        if (w->step[last][i] != step[i] * size) return 0;
    return 1;
}

void walk_open(OpWalk *w, int rank, const int64_t *size, const int64_t (*step)[OP_MAX_RANK], int n)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    int64_t rows = 1;
    for (int d = 0; d < rank; d++) {
        int64_t own[WALK_OPERANDS] = {0};
        if (size[d] == 1) continue;
        for (int i = 0; i < n; i++) own[i] = step[i][d];
        int with_last = w->rank && merges(w, w->rank - 1, size[d], own);
        int at = with_last ? w->rank - 1 : w->rank++;
        w->size[at] = with_last ? w->size[at] * size[d] : size[d];
        memcpy(w->step[at], own, sizeof own);
    }
    if (!w->rank) w->size[w->rank++] = 1;
    for (int d = 0; d < w->rank - 1; d++) rows *= w->size[d];
    w->pieces = (w->size[w->rank - 1] + WALK_RUN - 1) / WALK_RUN;
    w->runs = rows * w->pieces;
}

OpRun walk_run(const OpWalk *w, int64_t i)
{
    int last = w->rank - 1;
    int64_t row = i / w->pieces, skipped = i % w->pieces * WALK_RUN, left = w->size[last] - skipped;
    OpRun r = {.first = row * w->size[last] + skipped,
               .n = left < WALK_RUN ? left : WALK_RUN,
               .step = w->step[last]};
    for (int k = 0; k < w->n; k++) r.at[k] = skipped * w->step[last][k];
    for (int d = last - 1; d >= 0; row /= w->size[d--])
        for (int k = 0; k < w->n; k++) r.at[k] += row % w->size[d] * w->step[d][k];
    return r;
}

void walk_place(const OpWalk *w, int64_t i, int64_t at[WALK_OPERANDS])
{
    memset(at, 0, WALK_OPERANDS * sizeof *at);
    for (int d = w->rank - 1; d >= 0; i /= w->size[d--]) {
        int64_t here = d ? i % w->size[d] : i;
        for (int k = 0; k < w->n; k++) at[k] += here * w->step[d][k];
    }
}

static void open_one(OpWalk *w, const OpTensor *t)
{
    walk_open(w, t->rank, t->size, (const int64_t(*)[OP_MAX_RANK]) & t->stride, 1);
}

static void gather_run(const OpWalk *w, int64_t i, const double *from, double *to)
{
    OpRun r = walk_run(w, i);
    int64_t step = r.step[0];
    from += r.at[0];
    for (int64_t k = 0; k < r.n; k++) to[r.first + k] = from[k * step];
}

void walk_gather(const OpTensor *t, const double *memory, double *to)
{
    OpWalk w;
    open_one(&w, t);
    memory += t->offset;
    if (op_elements(t) < PARALLEL) { /* even a team of one thread takes its time */
        for (int64_t i = 0; i < w.runs; i++) gather_run(&w, i, memory, to);
    } else {
#pragma omp parallel for
        for (int64_t i = 0; i < w.runs; i++) gather_run(&w, i, memory, to);
    }
}

void walk_scatter(const OpTensor *t, const double *from, double *memory)
{
    OpWalk w;
    open_one(&w, t);
    for (int64_t i = 0; i < w.runs; i++) {
        OpRun r = walk_run(&w, i);
        double *to = memory + t->offset + r.at[0];
        int64_t step = r.step[0];
        for (int64_t k = 0; k < r.n; k++) to[k * step] = from[r.first + k];
    }
}
