/* Kernels of normalisations, launched as eager PyTorch does it. Layer and RMS norm are one launch,
 * a block a row: of 32 x 4 threads, each of which reads four elements at once and twice, where rows
 * allow it, and one of scalar loads where not. The others with statistics of the input are two:
 * statistics, then all elements; where there are few rows, several blocks share one and a third
 * launch merges their states. With running statistics one launch does it all, a block a plane. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"
#include "ops/row/op_norm.h"

EMBED(op_norm_cu, "ops/row/op_norm_text.cu")

enum { ROW_THREADS = 512, TARGET_BLOCKS = 528, LEAST_A_THREAD = 16 };

/* Where the statistics are: names of memory, "y1" or "t0". */
typedef struct {
    char mean[8], rstd[8];
} Saved;

static void moments_text(Buffer *b)
{
    part_put(b, op_norm_cu, "moments");
}

static const char *type_of(const Norm *m)
{
    return text_type(m->x->dtype);
}

static const char *index_type(const Norm *m)
{
    return m->rows * m->n < 1 << 30 ? "int" : "long long";
}

/* The element x at the flat index in the variable `f`. */
static void element(Buffer *b, const Norm *m, const char *f)
{
    buffer_printf(b, "(T)%sx%d[", text_cast(m->x->dtype, DTYPE_F32), m->x_index);
    text_index(b, m->x, m->x->rank, m->x->size, f);
    buffer_puts(b, "]");
}

/* An element of a tensor of channels at the index in the variable `j`. */
static void channel(Buffer *b, const OpTensor *t, int index, const char *j)
{
    buffer_printf(b, "(T)%sx%d[", text_cast(t->dtype, DTYPE_F32), index);
    text_index(b, t, t->rank, t->size, j);
    buffer_puts(b, "]");
}

static void number(Buffer *b, const char *before, double v, const char *after)
{
    buffer_printf(b, "%s(T)", before);
    text_number(b, v);
    buffer_puts(b, after);
}

/* The loop over the elements of the row r from `first` on. */
static void walk(Buffer *b, const Norm *m, const char *first, int64_t step, const char *statement)
{
    const char *type = index_type(m);
    buffer_printf(b,
                  "#pragma unroll 4\n"
                  "    for (%s i = %s; i < %lld; i += %lld) {\n"
                  "        const %s f = ",
                  type, first, (long long)m->n, (long long)step, type);
    if (m->inner == m->n)
        buffer_printf(b, "r * %lld + i;\n", (long long)m->n);
    else
        buffer_printf(b, "i / %lld * %lld + r * %lld + i %% %lld;\n", (long long)m->inner,
                      (long long)(m->rows * m->inner), (long long)m->inner, (long long)m->inner);
    buffer_printf(b, "        %s", statement);
    element(b, m, "f");
    buffer_puts(b, ");\n    }\n");
}

/* Stores the statistics in s of the row r, for one thread. */
static void save(Buffer *b, const OpCall *c, const Norm *m, const Saved *saved)
{
    const char *type = c->n_results > 1 ? dtype_ctype(c->result[1].dtype) : "T";
    number(b, "    const T eps = ", m->eps, ";\n");
    buffer_printf(b, "    const T var = s.m2 / (T)%lldLL;\n", (long long)m->n);
    if (*saved->mean) buffer_printf(b, "    %s[r] = (%s)s.mean;\n", saved->mean, type);
    if (*saved->rstd) buffer_printf(b, "    %s[r] = (%s)rsqrt(var + eps);\n", saved->rstd, type);
    if (m->results != NORM_UPDATED) return;
    double n = (double)m->n, share[] = {m->share, m->share * n / (n - 1)};
    const OpTensor *t[] = {m->mean, m->var};
    int index[] = {m->mean_index, m->var_index};
    for (int i = 0; i < 2; i++) {
        buffer_printf(b, "    y%d[r] = (%s)(", 3 + i, dtype_ctype(c->result[3 + i].dtype));
        number(b, "", 1 - m->share, " * ");
        channel(b, t[i], index[i], "r");
        number(b, " + ", share[i], i ? " * var);\n" : " * s.mean);\n");
    }
}

/* The end of the statement that stores y: "value * weight + bias" at the channel j. */
static void affine(Buffer *b, const Norm *m)
{
    if (m->weight) {
        buffer_puts(b, " * ");
        channel(b, m->weight, m->weight_index, "j");
    }
    if (m->bias) {
        buffer_puts(b, " + ");
        channel(b, m->bias, m->bias_index, "j");
    }
    buffer_puts(b, ");\n");
}

static void add_tensors(TextOperands *o, const Norm *m, int affine_too, int running_too)
{
    text_operand(o, 'x', m->x_index);
    if (affine_too && m->weight) text_operand(o, 'x', m->weight_index);
    if (affine_too && m->bias) text_operand(o, 'x', m->bias_index);
    if (running_too) text_operand(o, 'x', m->mean_index);
    if (running_too) text_operand(o, 'x', m->var_index);
}

/* ---- layer and RMS norm ---- */

enum { LANES = 4, WARPS = 4, MAX_COUNTED = 1 << 24 /* a float counts so far */ };

/* 1: a tensor of channels, or x, can be read four elements at once. */
static int in_fours(const OpTensor *t)
{
    return !t || (op_is_contiguous(t) && t->offset % LANES == 0);
}

static int is_fours(const Norm *m)
{
    return m->x->dtype != DTYPE_F64 && m->n % LANES == 0 && m->n <= MAX_COUNTED && in_fours(m->x) &&
           in_fours(m->weight) && in_fours(m->bias);
}

/* const op_fours<type> *NAME: where a tensor's elements begin, or a row's. */
static void fours(Buffer *b, const char *name, const OpTensor *t, int index, const char *more)
{
    if (!t) return;
    buffer_printf(b, "    const op_fours<%s> *%s = (const op_fours<%s> *)(x%d + %lldLL%s);\n",
                  dtype_ctype(t->dtype), name, dtype_ctype(t->dtype), index, (long long)t->offset,
                  more);
}

/* The moments of the warps, merged pair by pair; mean and rstd for all threads. */
static void merge_warps(Buffer *b, const Norm *m)
{
    part_put(b, op_norm_cu, "merge_warps");
    number(b, "    const T eps = ", m->eps, ";\n");
    buffer_puts(b, "    const T mean = shared[0][0], rstd = rsqrt(shared[0][1] + eps);\n");
}

static void fours_text(Buffer *b, const OpCall *c, const Norm *m, const Saved *saved)
{
    const char *stored = dtype_ctype(c->result[0].dtype);
    int rms = m->kind == NORM_RMS;
    part_fill(b, op_norm_cu, "fours", "type=%s;warps=%d", type_of(m), WARPS);
    fours(b, "row", m->x, m->x_index, " + r * n");
    fours(b, "weight", m->weight, m->weight_index, "");
    fours(b, "bias", m->bias, m->bias_index, "");
    part_fill(b, op_norm_cu, "fours_sum", "stored=%s;type=%s;add=%s", stored,
              dtype_ctype(m->x->dtype), rms ? "add_square" : "add");
    merge_warps(b, m);
    part_fill(b, op_norm_cu, "fours_store", "type=%s;stored=%s;weight=%s;mean=%s;bias=%s",
              dtype_ctype(m->x->dtype), stored, m->weight ? "(T)weight[i].v[k] * (" : "(",
              rms ? "" : " - mean", m->bias ? ") + (T)bias[i].v[k]" : ")");
    const char *type = c->n_results > 1 ? dtype_ctype(c->result[1].dtype) : "T";
    if (*saved->mean)
        buffer_printf(b, "    if (thread == 0) %s[r] = (%s)mean;\n", saved->mean, type);
    if (*saved->rstd)
        buffer_printf(b, "    if (thread == 0) %s[r] = (%s)rstd;\n", saved->rstd, type);
    buffer_puts(b, "    (void)mean;\n");
}

/* Scratch memory where the statistics are no results: eager PyTorch stores them too. */
static int keep_statistics(const OpCall *c, const Norm *m, OpPlain *out, Saved *saved, Error *err)
{
    if (c->n_results > 1) {
        *saved = (Saved){"y1", "y2"};
        return 0;
    }
    int mean = -1, rstd = text_scratch(out, DTYPE_F32, m->rows, err);
    if (rstd < 0) return -1;
    snprintf(saved->rstd, sizeof saved->rstd, "t%d", rstd);
    if (m->kind == NORM_RMS) return 0;
    if ((mean = text_scratch(out, DTYPE_F32, m->rows, err)) < 0) return -1;
    snprintf(saved->mean, sizeof saved->mean, "t%d", mean);
    return 0;
}

static int fours_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    Saved saved = {"", ""};
    char size[24];
    if (keep_statistics(c, m, out, &saved, err)) return -1;
    add_tensors(&o, m, 1, 0);
    text_operand(&o, 'y', 0);
    text_operand_named(&o, saved.mean);
    text_operand_named(&o, saved.rstd);
    snprintf(size, sizeof size, "n=%lld", (long long)m->n);
    text_operand_named(&o, size);
    moments_text(b);
    part_put(b, op_norm_cu, "fours_type");
    OpLaunch *l = text_begin(out, &(TextHead){"layer_norm", o.text, m->rows, 32}, err);
    if (!l) return -1;
    l->block[1] = WARPS;
    fours_text(b, c, m, &saved);
    return text_end(out, err);
}

static int one_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    Saved saved = {"", ""};
    int threads = m->n <= 512 ? 128 : m->n <= 1024 ? 256 : ROW_THREADS;
    const char *type = index_type(m);
    add_tensors(&o, m, 1, 0);
    text_operand(&o, 'y', 0);
    if (c->n_results > 1) {
        saved = (Saved){"y1", "y2"};
        text_operand(&o, 'y', 1);
        text_operand(&o, 'y', 2);
    }
    moments_text(b);
    if (!text_begin(out, &(TextHead){"layer_norm", o.text, m->rows, threads}, err)) return -1;
    part_fill(b, op_norm_cu, "row", "type=%s;index=%s", type_of(m), type);
    walk(b, m, "threadIdx.x", threads, m->kind == NORM_RMS ? "s.add_square(" : "s.add(");
    buffer_puts(b, "    s.block(shared);\n    if (threadIdx.x == 0) {\n");
    save(b, c, m, &saved);
    part_fill(b, op_norm_cu, "row_store", "index=%s;n=%lld;threads=%d;stored=%s", type,
              (long long)m->n, threads, dtype_ctype(c->result[0].dtype));
    element(b, m, "f");
    buffer_puts(b, m->kind == NORM_RMS ? ") * rstd" : " - mean) * rstd");
    affine(b, m);
    buffer_puts(b, "    }\n    (void)mean;\n");
    return text_end(out, err);
}

/* ---- statistics, then elements ---- */

static void result_operands(TextOperands *o, const OpCall *c, const Norm *m, const Saved *saved)
{
    if (m->results == NORM_UPDATED) {
        text_operand(o, 'x', m->mean_index);
        text_operand(o, 'x', m->var_index);
        text_operand(o, 'y', 3);
        text_operand(o, 'y', 4);
    }
    (void)c;
    text_operand_named(o, saved->mean);
    text_operand_named(o, saved->rstd);
}

/* Parts of a row, and scratch memory for the number of their elements, the mean and the squares. */
typedef struct {
    int64_t n;
    int t[3];
} Splits;

static int merge_launch(const Norm *m, const Splits *p, const Saved *saved, OpPlain *out,
                        Error *err)
{
    const OpCall *c = out->call;
    const int64_t splits = p->n;
    const int *t = p->t;
    Buffer *b = out->source;
    TextOperands o = {""};
    for (int i = 0; i < 3; i++) text_operand(&o, 't', t[i]);
    result_operands(&o, c, m, saved);
    if (!text_begin(out, &(TextHead){"moments_merge", o.text, m->rows, 32}, err)) return -1;
    part_fill(b, op_norm_cu, "merge", "type=%s;splits=%lld;n=%d;mean=%d;m2=%d", type_of(m),
              (long long)splits, t[0], t[1], t[2]);
    save(b, c, m, saved);
    return text_end(out, err);
}

static int statistics_launch(const OpCall *c, const Norm *m, const Saved *saved, OpPlain *out,
                             Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    int threads = m->n < ROW_THREADS ? 32 : ROW_THREADS;
    Dtype state = m->x->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    Splits p = {.n = 1};
    int64_t limit = m->n / ((int64_t)threads * LEAST_A_THREAD);
    char first[48] = "threadIdx.x";
    if (m->kind == NORM_BATCH && m->rows < TARGET_BLOCKS / 2) p.n = TARGET_BLOCKS / m->rows;
    if (p.n > limit) p.n = limit;
    if (p.n < 2) p.n = 1;
    const int64_t splits = p.n;
    const int *t = p.t;
    for (int i = 0; i < 3 && splits > 1; i++)
        if ((p.t[i] = text_scratch(out, state, m->rows * splits, err)) < 0) return -1;
    text_operand(&o, 'x', m->x_index);
    if (splits == 1)
        result_operands(&o, c, m, saved);
    else
        for (int i = 0; i < 3; i++) text_operand(&o, 't', t[i]);
    moments_text(b);
    OpLaunch *l = text_begin(out, &(TextHead){"moments", o.text, m->rows, threads}, err);
    if (!l) return -1;
    l->grid[1] = splits;
    part_fill(b, op_norm_cu, "statistics", "type=%s;index=%s", type_of(m), index_type(m));
    if (splits > 1) snprintf(first, sizeof first, "blockIdx.y * %d + threadIdx.x", threads);
    walk(b, m, first, threads * splits, "s.add(");
    buffer_puts(b, "    s.block(shared);\n    if (threadIdx.x) return;\n");
    if (splits == 1) {
        save(b, c, m, saved);
        return text_end(out, err);
    }
    part_fill(b, op_norm_cu, "split_state", "splits=%lld;n=%d;mean=%d;m2=%d", (long long)splits,
              t[0], t[1], t[2]);
    if (text_end(out, err)) return -1;
    return merge_launch(m, &p, saved, out, err);
}

static int elements_launch(const OpCall *c, const Norm *m, const Saved *saved, OpPlain *out,
                           Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    int64_t n = op_elements(m->x);
    const char *type = index_type(m);
    add_tensors(&o, m, 1, !m->own);
    text_operand_named(&o, saved->mean);
    text_operand_named(&o, saved->rstd);
    text_operand(&o, 'y', 0);
    if (!text_each(out, "normalize", o.text, n, err)) return -1;
    buffer_printf(b,
                  "    typedef %s T;\n"
                  "    const %s j = i / %lld %% %lld, r = i / %lld %% %lld;\n",
                  type_of(m), type, (long long)m->spread, (long long)m->channels,
                  (long long)m->inner, (long long)m->rows);
    if (m->own) {
        buffer_printf(b, "    const T mean = (T)%s[r], rstd = (T)%s[r];\n", saved->mean,
                      saved->rstd);
    } else {
        buffer_puts(b, "    const T mean = ");
        channel(b, m->mean, m->mean_index, "r");
        buffer_puts(b, ", rstd = rsqrt(");
        channel(b, m->var, m->var_index, "r");
        number(b, " + ", m->eps, ");\n");
    }
    buffer_printf(b, "    (void)j;\n    y0[i] = (%s)((", dtype_ctype(c->result[0].dtype));
    element(b, m, "i");
    buffer_puts(b, " - mean) * rstd");
    affine(b, m);
    return text_each_end(out, err);
}

/* ---- planes of running statistics ---- */

/* The threads that eager PyTorch gives so many elements. */
static int threads_of(int64_t n)
{
    int threads = 32;
    while (threads < 512 && threads < n) threads *= 2;
    return threads;
}

/* const T NAME: the channel's element of a tensor, or `otherwise`. */
static void plane_number(Buffer *b, const char *name, const OpTensor *t, int index,
                         const char *otherwise)
{
    buffer_printf(b, "    const T %s = ", name);
    if (t)
        channel(b, t, index, "r");
    else
        buffer_puts(b, otherwise);
    buffer_puts(b, ";\n");
}

/* A block for each channel of a batch's element, or of as many as its threads reach. */
static int planes_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    const char *type = index_type(m);
    const int64_t batch = m->x->size[0];
    const int few = threads_of(m->spread) < 64 ? threads_of(m->spread) : 64,
              quarter = threads_of(m->spread / 4), along = quarter > few ? quarter : few,
              beside = along < 64 ? 64 / along : 1;
    int64_t blocks = (batch + beside - 1) / beside, most = 256 * 1024 / m->channels;
    if (blocks > most) blocks = most > 1 ? most : 1;
    add_tensors(&o, m, 1, 1);
    text_operand(&o, 'y', 0);
    OpLaunch *l = text_begin(out, &(TextHead){"normalize", o.text, m->channels, along}, err);
    if (!l) return -1;
    l->grid[1] = blocks < 65535 ? blocks : 65535;
    l->block[1] = beside;
    buffer_printf(b, "    typedef %s T;\n    const %s r = blockIdx.x;\n", type_of(m), type);
    plane_number(b, "mean", m->mean, m->mean_index, "0");
    plane_number(b, "var", m->var, m->var_index, "1");
    plane_number(b, "weight", m->weight, m->weight_index, "1");
    plane_number(b, "bias", m->bias, m->bias_index, "0");
    number(b, "    const T rstd = 1 / sqrt(var + ", m->eps, ");\n");
    part_fill(b, op_norm_cu, "planes", "index=%s;batch=%lld;channels=%lld;spread=%lld;stored=%s",
              type, (long long)batch, (long long)m->channels, (long long)m->spread,
              dtype_ctype(c->result[0].dtype));
    element(b, m, "i");
    buffer_puts(b, " - mean) * rstd * weight + bias);\n        }\n    }\n");
    return text_end(out, err);
}

/* 1: eager PyTorch has a kernel by planes: channels are not the last dimension in memory. */
static int is_planes(const Norm *m)
{
    return m->kind == NORM_BATCH && !m->own && m->spread > 1 && m->channels > 1 && m->mean &&
           m->var && op_is_contiguous(m->x);
}

/* Running statistics that are results and do not change. */
static int keep_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    text_operand(&o, 'x', m->mean_index);
    text_operand(&o, 'x', m->var_index);
    text_operand(&o, 'y', 3);
    text_operand(&o, 'y', 4);
    if (!text_each(out, "keep", o.text, m->channels, err)) return -1;
    buffer_printf(b, "    typedef %s T;\n    y3[i] = (%s)(", type_of(m),
                  dtype_ctype(c->result[3].dtype));
    channel(b, m->mean, m->mean_index, "i");
    buffer_printf(b, ");\n    y4[i] = (%s)(", dtype_ctype(c->result[4].dtype));
    channel(b, m->var, m->var_index, "i");
    buffer_puts(b, ");\n");
    return text_each_end(out, err);
}

int norm_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Norm m;
    Saved saved = {"", ""};
    if (norm_of(c, &m, err)) return -1;
    if (m.kind == NORM_LAYER || m.kind == NORM_RMS)
        return is_fours(&m) ? fours_launch(c, &m, out, err) : one_launch(c, &m, out, err);
    if (!m.own) {
        if (m.results == NORM_UPDATED && keep_launch(c, &m, out, err)) return -1;
        return is_planes(&m) ? planes_launch(c, &m, out, err)
                             : elements_launch(c, &m, &saved, out, err);
    }
    if (m.results == NORM_ONE) {
        Dtype d = m.x->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
        int mean = text_scratch(out, d, m.rows, err), rstd = text_scratch(out, d, m.rows, err);
        if (mean < 0 || rstd < 0) return -1;
        snprintf(saved.mean, sizeof saved.mean, "t%d", mean);
        snprintf(saved.rstd, sizeof saved.rstd, "t%d", rstd);
    } else {
        saved = (Saved){"y1", "y2"};
    }
    if (statistics_launch(c, &m, &saved, out, err)) return -1;
    return elements_launch(c, &m, &saved, out, err);
}
