/* Negative log-likelihood. With a reduction one block adds all elements up, as in eager PyTorch; where
 * there are many, several blocks add parts up and a second launch adds the parts. */
#include "ops/row/op_nll.h"

#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_element.h"
#include "ops/op_text.h"

EMBED(op_nll_cu, "ops/row/op_nll.cu")

enum { ONE_BLOCK = 1 << 16, MAX_THREADS = 1024, MAX_PARTS = 528 };

typedef struct {
    const OpTensor *x, *target, *weight;
    int64_t reduction, ignored, n, classes, inner; /* n targets; inner: after the class */
} Nll;

static int two_results(const OpCall *c)
{
    return strstr(c->op->name, "forward") != NULL;
}

static int nll_of(const OpCall *c, Nll *m, Error *err)
{
    *m = (Nll){.x = op_tensor(c, 0), .target = op_tensor(c, 1), .weight = op_tensor(c, 2)};
    m->reduction = c->arg[3].integer[0];
    m->ignored = c->arg[4].integer[0];
    int rank = m->x->rank, at = rank > 1, same = m->target->rank == rank - 1;
    if (rank < 1) return error_set(err, ERROR_INVALID, "expected one dimension or more, found 0");
    for (int d = 0; d < rank && same; d++)
        if (d != at && m->target->size[d - (d > at)] != m->x->size[d]) same = 0;
    if (!same)
        return error_set(err, ERROR_INVALID,
                         "target does not have the input's shape without the classes");
    if (m->target->dtype != DTYPE_I64 && m->target->dtype != DTYPE_I32)
        return error_set(err, ERROR_INVALID, "target: expected integers, found %s",
                         dtype_name(m->target->dtype));
    if (!dtype_is_float(m->x->dtype))
        return error_set(err, ERROR_INVALID, "expected a floating dtype, found %s",
                         dtype_name(m->x->dtype));
    m->n = op_elements(m->target);
    m->classes = m->x->size[at];
    m->inner = 1;
    for (int d = at + 1; d < rank; d++) m->inner *= m->x->size[d];
    if (m->weight && (m->weight->rank != 1 || m->weight->size[0] != m->classes))
        return error_set(err, ERROR_INVALID, "weight: expected a tensor of %lld elements",
                         (long long)m->classes);
    if (m->reduction < 0 || m->reduction > 2)
        return error_set(err, ERROR_INVALID, "expected a reduction of 0, 1 or 2, found %lld",
                         (long long)m->reduction);
    return 0;
}

int nll_infer(OpCall *c, Error *err)
{
    Nll m;
    if (nll_of(c, &m, err)) return -1;
    int rank = m.reduction ? 0 : m.target->rank;
    if (op_result(c, m.x->dtype, rank, m.target->size, err)) return -1;
    return two_results(c) ? op_result(c, m.x->dtype, 0, m.target->size, err) : 0;
}

int nll_reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]], *target = in[c->arg[1].integer[0]], *weight;
    double sum = 0, weights = 0;
    Nll m;
    if (nll_of(c, &m, err)) return -1;
    weight = m.weight ? in[c->arg[2].integer[0]] : NULL;
    for (int64_t i = 0; i < m.n; i++) {
        int64_t class = (int64_t)target[i];
        double w = 0, v = 0;
        if (class != m.ignored) {
            if (class < 0 || class >= m.classes)
                return error_set(err, ERROR_INVALID, "class %lld of %lld is a target",
                                 (long long)class, (long long)m.classes);
            w = weight ? weight[class] : 1;
            v = -w * x[(i / m.inner * m.classes + class) * m.inner + i % m.inner];
        }
        if (!m.reduction) out[0][i] = v;
        sum += v;
        weights += w;
    }
    if (m.reduction) out[0][0] = m.reduction == 1 ? sum / weights : sum;
    if (two_results(c)) out[1][0] = m.reduction ? weights : 0;
    return 0;
}

/* Result 0 without a reduction needs one target, all others all of them. */
static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    const int x = (int)c->arg[0].integer[0], target = (int)c->arg[1].integer[0];
    const double *known = out->known[target];
    Error ignored;
    Nll m;
    if (nll_of(c, &m, &ignored) || !s->n) return;
    int all = m.reduction || s->result;
    for (int64_t k = 0; k < (all ? m.n : s->n); k++) {
        int64_t i = all ? k : s->at[k], first = i / m.inner * m.classes * m.inner + i % m.inner;
        out->add(out->of, target, i, 1, 1);
        if (!known)
            out->add(out->of, x, first, m.inner, m.classes);
        else if (known[i] >= 0 && known[i] < (double)m.classes)
            out->add(out->of, x, first + (int64_t)known[i] * m.inner, 1, 1);
    }
    if (m.weight) out->add(out->of, (int)c->arg[2].integer[0], 0, 1, m.classes);
}

/* The loss of target i, and its weight. */
static double element_of(const OpCall *c, const Nll *m, const double *const *in, int64_t i,
                         double *weight)
{
    int64_t class = (int64_t)in[c->arg[1].integer[0]][i];
    *weight = 0;
    if (class == m->ignored || class < 0 || class >= m->classes) return 0;
    *weight = m->weight ? in[c->arg[2].integer[0]][class] : 1;
    return -*weight *
           in[c->arg[0].integer[0]][(i / m->inner * m->classes + class) * m->inner + i % m->inner];
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    double sum = 0, weights = 0, w;
    Error ignored;
    Nll m;
    if (nll_of(c, &m, &ignored)) return;
    int all = m.reduction || s->result;
    for (int64_t i = 0; all && i < m.n; i++) {
        sum += element_of(c, &m, in, i, &w);
        weights += w;
    }
    for (int64_t k = 0; k < s->n; k++)
        y[k] = s->result          ? (m.reduction ? weights : 0)
               : m.reduction == 1 ? sum / weights
               : m.reduction      ? sum
                                  : element_of(c, &m, in, s->at[k], &w);
}

const OpElements nll_elements = {element_needs, element_compute, NULL, NULL};

void nll_cost(const OpCall *c, OpCost *out)
{
    const OpTensor *x = op_tensor(c, 0), *target = op_tensor(c, 1);
    double n = (double)op_elements(target);
    out->flops = 2 * n;
    out->bytes -= op_bytes(x); /* an element a target is read */
    out->bytes += n * (double)dtype_size(x->dtype);
}

/* ---- kernels ---- */

/* Sets w and v of the target at the variable i. */
static void element(Buffer *b, const OpCall *c, const Nll *m)
{
    int at[OP_MAX_RANK], rank = m->x->rank, class_dim = rank > 1;
    int64_t step[OP_MAX_RANK];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (d != class_dim) at[n++] = d;
    for (int d = 0; d < n; d++) step[d] = m->x->stride[at[d]];
    buffer_printf(b, "        const long long own = x%lld[", (long long)c->arg[1].integer[0]);
    text_index(b, m->target, m->target->rank, m->target->size, "i");
    buffer_printf(b,
                  "];\n        T w = 0, v = 0;\n"
                  "        if (own != %lldLL && own >= 0 && own < %lldLL) {\n            w = ",
                  (long long)m->ignored, (long long)m->classes);
    if (m->weight)
        buffer_printf(b, "(T)%sx%lld[%lld + own * %lld];\n", text_cast(m->weight->dtype, DTYPE_F32),
                      (long long)c->arg[2].integer[0], (long long)m->weight->offset,
                      (long long)m->weight->stride[0]);
    else
        buffer_puts(b, "1;\n");
    buffer_printf(b, "            v = -w * (T)%sx%lld[own * %lld + ",
                  text_cast(m->x->dtype, DTYPE_F32), (long long)c->arg[0].integer[0],
                  (long long)m->x->stride[class_dim]);
    text_strided(b, &(Strided){m->x->offset, n, m->target->size, step}, "i");
    buffer_puts(b, "];\n        }\n");
}

static TextOperands inputs(const OpCall *c, const Nll *m)
{
    TextOperands o = {""};
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    text_operand(&o, 'x', (int)c->arg[1].integer[0]);
    if (m->weight) text_operand(&o, 'x', (int)c->arg[2].integer[0]);
    return o;
}

static int each_launch(const OpCall *c, const Nll *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = inputs(c, m);
    text_operand(&o, 'y', 0);
    if (two_results(c)) text_operand(&o, 'y', 1);
    if (!text_each(out, "nll", o.text, m->n > 0 ? m->n : 1, err)) return -1;
    const char *type = dtype_ctype(m->x->dtype);
    if (two_results(c)) buffer_printf(b, "    if (i == 0) y1[0] = (%s)0.0f;\n", type);
    buffer_printf(b, "    if (i >= %lld) return;\n    typedef %s T;\n", (long long)m->n,
                  text_type(m->x->dtype));
    element(b, c, m);
    buffer_printf(b, "        y0[i] = (%s)v;\n", type);
    return text_each_end(out, err);
}

/* Stores the sums of all elements, for one thread. */
static void store(Buffer *b, const OpCall *c, const Nll *m)
{
    const char *type = dtype_ctype(m->x->dtype);
    buffer_printf(b, "    y0[0] = (%s)(%s);\n", type, m->reduction == 1 ? "sum / weights" : "sum");
    if (two_results(c)) buffer_printf(b, "    y1[0] = (%s)weights;\n", type);
}

static void reduce(Buffer *b)
{
    part_put(b, op_nll_cu, "reduce");
}

static int sum_launch(const Nll *m, int64_t parts, const int *t, OpPlain *out, Error *err)
{
    const OpCall *c = out->call;
    Buffer *b = out->source;
    TextOperands o = inputs(c, m);
    char size[32];
    int64_t threads = 32;
    while (threads < MAX_THREADS && threads * 24 < m->n) threads *= 2; /* some 16 targets each */
    if (parts == 1) text_operand(&o, 'y', 0);
    if (parts == 1 && two_results(c)) text_operand(&o, 'y', 1);
    for (int i = 0; parts > 1 && i < 2; i++) text_operand(&o, 't', t[i]);
    snprintf(size, sizeof size, "n:%lld", (long long)m->n);
    text_operand_named(&o, size);
    if (!text_begin(out, &(TextHead){"nll", o.text, parts, (int)threads}, err)) return -1;
    buffer_printf(
        b,
        "    typedef %s T;\n"
        "    __shared__ T shared[32];\n"
        "    T sum = 0, weights = 0;\n"
        "    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;\n"
        "         i += (long long)blockDim.x * gridDim.x) {\n",
        text_type(m->x->dtype));
    element(b, c, m);
    buffer_puts(b, "        sum += v;\n        weights += w;\n    }\n");
    reduce(b);
    if (parts == 1)
        store(b, c, m);
    else
        buffer_printf(b, "    t%d[blockIdx.x] = sum;\n    t%d[blockIdx.x] = weights;\n", t[0],
                      t[1]);
    return text_end(out, err);
}

static int parts_launch(const Nll *m, int64_t parts, const int *t, OpPlain *out, Error *err)
{
    const OpCall *c = out->call;
    Buffer *b = out->source;
    TextOperands o = {""};
    text_operand(&o, 't', t[0]);
    text_operand(&o, 't', t[1]);
    text_operand(&o, 'y', 0);
    if (two_results(c)) text_operand(&o, 'y', 1);
    if (!text_begin(out, &(TextHead){"nll_parts", o.text, 1, 256}, err)) return -1;
    part_fill(b, op_nll_cu, "parts", "type=%s;parts=%lld;sums=%d;weights=%d",
              text_type(m->x->dtype), (long long)parts, t[0], t[1]);
    reduce(b);
    store(b, c, m);
    return text_end(out, err);
}

int nll_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Nll m;
    int t[2] = {0};
    int64_t parts = 1;
    if (nll_of(c, &m, err)) return -1;
    if (!m.reduction) return each_launch(c, &m, out, err);
    Dtype d = m.x->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    if (m.n > ONE_BLOCK && m.x->rank > 2) parts = m.n / (4 * MAX_THREADS);
    if (parts > MAX_PARTS) parts = MAX_PARTS;
    for (int i = 0; i < 2 && parts > 1; i++)
        if ((t[i] = text_scratch(out, d, parts, err)) < 0) return -1;
    text_block_reduce(out);
    if (sum_launch(&m, parts, t, out, err)) return -1;
    return parts > 1 ? parts_launch(&m, parts, t, out, err) : 0;
}

const Op nll_op = {
    "nll forward",
    "Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index",
    nll_infer,
    nll_reference,
    nll_plain,
    nll_cost,
    0,
    NULL,
    NULL,
    &nll_elements,
};
