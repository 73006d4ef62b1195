/* Normalisations over rows of elements, with statistics of the input or running ones. In references one
 * thread computes a row, in an order that does not depend on the number of threads. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/op_element.h"
#include "ops/row/op_norm.h"

static const NormDetail *detail_of(const OpCall *c)
{
    return c->op->detail;
}

static const OpTensor *named(const OpCall *c, const char *name, int *index)
{
    int at = op_argument(c->op, name);
    const OpTensor *t = at < 0 ? NULL : op_tensor(c, at);
    *index = t ? (int)c->arg[at].integer[0] : -1;
    return t;
}

static double named_number(const OpCall *c, const char *name, double otherwise)
{
    int at = op_argument(c->op, name);
    return at < 0 || c->arg[at].kind == OP_NONE ? otherwise : c->arg[at].number;
}

static int64_t product(const int64_t *size, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++) all *= size[i];
    return all;
}

/* The trailing dimensions are those of the argument normalized_shape. */
static int of_shape(const OpCall *c, Norm *m, Error *err)
{
    const OpValue *v = &c->arg[1];
    int lead = m->x->rank - v->n;
    if (v->n < 1 || lead < 0)
        return error_set(err, ERROR_INVALID, "normalized_shape has %d dimensions, the input %d",
                         v->n, m->x->rank);
    for (int d = 0; d < v->n; d++)
        if (v->integer[d] != m->x->size[lead + d])
            return error_set(err, ERROR_INVALID,
                             "expected a size of %lld at dimension %d, found %lld",
                             (long long)v->integer[d], lead + d, (long long)m->x->size[lead + d]);
    m->rows = product(m->x->size, lead);
    m->n = m->inner = m->channels = product(v->integer, v->n);
    m->spread = 1;
    const OpTensor *affine[] = {m->weight, m->bias};
    for (int i = 0; i < 2; i++)
        if (affine[i] && (affine[i]->rank != v->n ||
                          memcmp(affine[i]->size, v->integer, (size_t)v->n * sizeof(int64_t))))
            return error_set(err, ERROR_INVALID, "%s does not have the shape normalized_shape",
                             i ? "bias" : "weight");
    return 0;
}

/* Dimension 1 has the channels. */
static int of_channels(const OpCall *c, Norm *m, Error *err)
{
    const OpTensor *x = m->x;
    if (x->rank < 2)
        return error_set(err, ERROR_INVALID, "expected a rank of 2 or more, found %d", x->rank);
    int64_t batch = x->size[0];
    m->channels = x->size[1];
    m->spread = product(x->size + 2, x->rank - 2);
    if (m->kind == NORM_GROUP) {
        int64_t groups = (int64_t)named_number(c, "num_groups", named_number(c, "group", 1));
        if (groups < 1 || m->channels % groups)
            return error_set(err, ERROR_INVALID, "%lld channels do not divide in %lld groups",
                             (long long)m->channels, (long long)groups);
        m->rows = batch * groups;
        m->n = m->inner = m->channels / groups * m->spread;
    } else if (m->kind == NORM_INSTANCE && m->own) {
        m->rows = batch * m->channels;
        m->n = m->inner = m->spread;
    } else {
        m->rows = m->channels;
        m->inner = m->spread;
        m->n = batch * m->inner;
    }
    const OpTensor *t[] = {m->weight, m->bias, m->mean, m->var};
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++)
        if (t[i] && op_elements(t[i]) != m->channels)
            return error_set(err, ERROR_INVALID, "%s: expected %lld elements, found %lld", names[i],
                             (long long)m->channels, (long long)op_elements(t[i]));
    return 0;
}

int norm_of(const OpCall *c, Norm *m, Error *err)
{
    const NormDetail *d = detail_of(c);
    *m = (Norm){.kind = d->kind, .results = d->results, .x = op_tensor(c, 0), .own = 1};
    m->x_index = (int)c->arg[0].integer[0];
    m->weight = named(c, "weight", &m->weight_index);
    m->bias = named(c, "bias", &m->bias_index);
    m->mean = named(c, "running_mean", &m->mean_index);
    m->var = named(c, "running_var", &m->var_index);
    m->eps = named_number(c, "eps", m->x->dtype == DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
    m->share = named_number(c, "momentum", 0);
    if (m->kind == NORM_BATCH) m->own = named_number(c, "training", 0) != 0;
    if (m->kind == NORM_INSTANCE) m->own = named_number(c, "use_input_stats", 1) != 0;
    if (!dtype_is_float(m->x->dtype))
        return error_set(err, ERROR_INVALID, "expected a floating dtype, found %s",
                         dtype_name(m->x->dtype));
    if (!m->mean != !m->var)
        return error_set(err, ERROR_INVALID, "running_mean and running_var come together");
    if (!m->own && !m->mean)
        return error_set(err, ERROR_INVALID, "running_mean and running_var are missing");
    return m->kind == NORM_LAYER || m->kind == NORM_RMS ? of_shape(c, m, err)
                                                        : of_channels(c, m, err);
}

/* The shape of the statistics that are results. */
static int saved_shape(const OpCall *c, const Norm *m, int64_t *size)
{
    int rank = m->x->rank;
    if (m->kind == NORM_BATCH) {
        size[0] = m->rows;
        return 1;
    }
    if (m->kind == NORM_GROUP) {
        size[0] = m->x->size[0];
        size[1] = m->x->size[0] ? m->rows / m->x->size[0] : 0;
        return 2;
    }
    for (int d = 0; d < rank; d++) size[d] = d < rank - c->arg[1].n ? m->x->size[d] : 1;
    return rank;
}

static int infer(OpCall *c, Error *err)
{
    Norm m;
    int64_t size[OP_MAX_RANK] = {0};
    if (norm_of(c, &m, err)) return -1;
    Dtype y = m.x->dtype, saved = y == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    if (m.kind == NORM_RMS && m.weight && m.weight->rank) {
        int args[] = {0, op_argument(c->op, "weight")};
        y = op_promote(c, args, 2);
    }
    if (op_result(c, y, m.x->rank, m.x->size, err)) return -1;
    if (m.results == NORM_ONE) return 0;
    int rank = m.results == NORM_EMPTY || !m.own ? 1 : saved_shape(c, &m, size);
    for (int i = 0; i < 2; i++)
        if (op_result(c, saved, rank, size, err)) return -1;
    if (m.results != NORM_UPDATED) return 0;
    if (!m.mean) return error_set(err, ERROR_INVALID, "running_mean and running_var are missing");
    return op_result(c, m.mean->dtype, 1, &m.channels, err) ||
                   op_result(c, m.var->dtype, 1, &m.channels, err)
               ? -1
               : 0;
}

/* ---- reference ---- */

/* A sum in parts of 1024 terms. squares: of (x - mean)^2. */
static double row_sum(const Norm *m, const double *x, int64_t row, int squares, double mean)
{
    double sum = 0, part = 0;
    int64_t i = 0;
    for (int64_t k = 0; i < m->n; k++) {
        const double *p = x + (k * m->rows + row) * m->inner;
        for (int64_t j = 0; j < m->inner; j++) {
            double v = p[j] - mean;
            part += squares ? v * v : v;
            if (++i % 1024 == 0) sum += part, part = 0;
        }
    }
    return sum + part;
}

static void statistics(const Norm *m, const double *const *in, int64_t row, double *mean,
                       double *var)
{
    const double *x = in[m->x_index];
    if (!m->own) {
        *mean = in[m->mean_index][row];
        *var = in[m->var_index][row];
        return;
    }
    *mean = 0;
    if (m->kind != NORM_RMS) *mean = row_sum(m, x, row, 0, 0) / (double)m->n;
    *var = row_sum(m, x, row, 1, *mean) / (double)m->n;
}

static void row_write(const Norm *m, const double *const *in, int64_t row, double mean, double rstd,
                      double *y)
{
    const double *x = in[m->x_index], *w = m->weight ? in[m->weight_index] : NULL,
                 *b = m->bias ? in[m->bias_index] : NULL;
    for (int64_t k = 0; k * m->inner < m->n; k++) {
        int64_t f = (k * m->rows + row) * m->inner, end = f + m->inner;
        int64_t j = f / m->spread % m->channels, last = f - f % m->spread;
        for (; f < end; j = j + 1 < m->channels ? j + 1 : 0) {
            double scale = w ? w[j] : 1, shift = b ? b[j] : 0;
            last = last + m->spread < end ? last + m->spread : end;
            for (; f < last; f++) y[f] = (x[f] - mean) * rstd * scale + shift;
        }
    }
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Norm m;
    if (norm_of(c, &m, err)) return -1;
#pragma omp parallel for if (m.rows * m.n >= 1 << 16)
    for (int64_t row = 0; row < m.rows; row++) {
        double mean, var;
        statistics(&m, in, row, &mean, &var);
        double rstd = 1 / sqrt(var + m.eps), n = (double)m.n;
        row_write(&m, in, row, mean, rstd, out[0]);
        if (m.own && m.results != NORM_ONE && m.results != NORM_EMPTY) {
            out[1][row] = mean;
            out[2][row] = rstd;
        }
        if (m.results == NORM_UPDATED) {
            double kept = m.own ? 1 - m.share : 1, added = 1 - kept;
            out[3][row] = kept * in[m.mean_index][row] + (m.own ? added * mean : 0);
            out[4][row] = kept * in[m.var_index][row] + (m.own ? added * var * n / (n - 1) : 0);
        }
    }
    return 0;
}

/* ---- single elements ---- */

static int64_t row_of(const Norm *m, int result, int64_t i)
{
    return result ? i : i / m->inner % m->rows;
}

static void element_rows(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row)
{
    Error ignored;
    Norm m;
    if (norm_of(c, &m, &ignored)) return; /* never: the call has been inferred */
    for (int64_t k = 0; k < n; k++) row[k] = row_of(&m, result, at[k]);
}

static int64_t channel_of(const Norm *m, int64_t i)
{
    return i / m->spread % m->channels;
}

static void needs_row(const Norm *m, int64_t row, const OpNeeds *out)
{
    for (int64_t k = 0; m->own && k * m->inner < m->n; k++)
        out->add(out->of, m->x_index, (k * m->rows + row) * m->inner, 1, m->inner);
    if (m->mean && row < op_elements(m->mean) && (!m->own || m->results == NORM_UPDATED)) {
        out->add(out->of, m->mean_index, row, 1, 1);
        out->add(out->of, m->var_index, row, 1, 1);
    }
}

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    int64_t before = -1;
    Error ignored;
    Norm m;
    if (norm_of(c, &m, &ignored)) return;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t i = s->at[k], row = row_of(&m, s->result, i);
        if (row != before) needs_row(&m, row, out);
        before = row;
        if (s->result) continue;
        out->add(out->of, m.x_index, i, 1, 1);
        if (m.weight) out->add(out->of, m.weight_index, channel_of(&m, i), 1, 1);
        if (m.bias) out->add(out->of, m.bias_index, channel_of(&m, i), 1, 1);
    }
}

/* Of a row: results 0 to 4 of NORM_UPDATED, but for 0 what an element is multiplied by. */
static void row_values(const Norm *m, const double *const *in, int64_t row, double *v)
{
    double var, n = (double)m->n, kept = m->own ? 1 - m->share : 1, added = 1 - kept;
    statistics(m, in, row, &v[1], &var);
    v[0] = v[2] = 1 / sqrt(var + m->eps);
    if (m->results != NORM_UPDATED) return;
    v[3] = kept * in[m->mean_index][row] + (m->own ? added * v[1] : 0);
    v[4] = kept * in[m->var_index][row] + (m->own ? added * var * n / (n - 1) : 0);
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    int64_t before = -1;
    double v[5] = {0};
    Error ignored;
    Norm m;
    if (norm_of(c, &m, &ignored)) return;
    const double *w = m.weight ? in[m.weight_index] : NULL, *b = m.bias ? in[m.bias_index] : NULL;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t i = s->at[k], row = row_of(&m, s->result, i), j = channel_of(&m, i);
        if (row != before) row_values(&m, in, row, v);
        before = row;
        y[k] = s->result ? v[s->result]
                         : (in[m.x_index][i] - v[1]) * v[0] * (w ? w[j] : 1) + (b ? b[j] : 0);
    }
}

static const OpElements elements = {element_needs, element_compute, element_rows, NULL};

static void cost(const OpCall *c, OpCost *out)
{
    Norm m;
    Error err;
    double n = (double)op_elements(op_tensor(c, 0));
    if (norm_of(c, &m, &err)) return;
    out->flops = n * ((m.own ? 3 : 0) + 2 + (m.weight ? 1 : 0) + (m.bias ? 1 : 0));
    if (m.own && m.results != NORM_UPDATED) /* running statistics are not read */
        out->bytes -= (m.mean ? op_bytes(m.mean) : 0) + (m.var ? op_bytes(m.var) : 0);
}

#define ROW(aten, schema, kind, results)                                              \
    {                                                                                 \
        "aten." aten, "Tensor input, " schema, infer, reference, norm_plain, cost, 0, \
            &(const NormDetail){kind, results}, NULL, &elements                       \
    }
#define AFFINE "Tensor? weight, Tensor? bias, "
#define RUNNING AFFINE "Tensor? running_mean, Tensor? running_var, "
#define GIVEN AFFINE "Tensor running_mean, Tensor running_var, "

/* Running statistics that a training batch_norm would change are inputs of the graph, and stay. */
static const Op table[] = {
    ROW("batch_norm.default",
        RUNNING "bool training, float momentum, float eps, bool cudnn_enabled", NORM_BATCH,
        NORM_ONE),
    ROW("_native_batch_norm_legit_no_training.default", GIVEN "float momentum, float eps",
        NORM_BATCH, NORM_EMPTY),
    ROW("_native_batch_norm_legit_functional.default",
        GIVEN "bool training, float momentum, float eps", NORM_BATCH, NORM_UPDATED),
    ROW("instance_norm.default",
        RUNNING "bool use_input_stats, float momentum, float eps, bool cudnn_enabled",
        NORM_INSTANCE, NORM_ONE),
    ROW("group_norm.default",
        "int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enabled=True",
        NORM_GROUP, NORM_ONE),
    ROW("native_group_norm.default", AFFINE "int N, int C, int HxW, int group, float eps",
        NORM_GROUP, NORM_SAVED),
    ROW("layer_norm.default",
        "int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enable=True",
        NORM_LAYER, NORM_ONE),
    ROW("native_layer_norm.default", "int[] normalized_shape, " AFFINE "float eps", NORM_LAYER,
        NORM_SAVED),
    ROW("rms_norm.default", "int[] normalized_shape, Tensor? weight=None, float? eps=None",
        NORM_RMS, NORM_ONE),
};

const OpFamily norm_family = {"norm", table, sizeof table / sizeof *table};
