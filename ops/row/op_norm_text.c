/* Kernels of normalisations, launched as eager PyTorch does it. Layer and RMS norm are one launch, a
 * block a row. The others with statistics of the input are two: statistics, then all elements; where
 * there are few rows, several blocks share one and a third launch merges their states. With running
 * statistics one launch does it all. */
#include <stdio.h>
#include <string.h>

#include "ops/op_text.h"
#include "ops/row/op_norm.h"
#include "ops/row/row_text.h"

enum { ROW_THREADS = 512, WANTED_BLOCKS = 528, LEAST_A_THREAD = 16 };

/* Where the statistics are: names of memory, "y1" or "t0". */
typedef struct {
    char mean[8], rstd[8];
} Saved;

static void moments_text(Buffer *b)
{
    buffer_puts(b, "#ifndef OP_MOMENTS\n"
                   "#define OP_MOMENTS\n"
                   "template <typename T> struct op_moments {\n"
                   "    T n, mean, m2;\n"
                   "    __device__ void add(T x)\n"
                   "    {\n"
                   "        n += 1;\n"
                   "        const T d = x - mean;\n"
                   "        mean += d * ((T)1 / n);\n"
                   "        m2 += d * (x - mean);\n"
                   "    }\n"
                   "    __device__ void add_square(T x) { n += 1, m2 += x * x; }\n"
                   "    __device__ void merge(T on, T omean, T om2)\n"
                   "    {\n"
                   "        if (on == 0) return;\n"
                   "        const T all = n + on, d = omean - mean, part = on / all;\n"
                   "        mean += d * part;\n"
                   "        m2 += om2 + d * d * n * part;\n"
                   "        n = all;\n"
                   "    }\n"
                   "    __device__ void warp()\n"
                   "    {\n"
                   "        for (int d = 16; d; d /= 2) {\n"
                   "            const T on = __shfl_down_sync(0xffffffffu, n, d);\n"
                   "            const T omean = __shfl_down_sync(0xffffffffu, mean, d);\n"
                   "            const T om2 = __shfl_down_sync(0xffffffffu, m2, d);\n"
                   "            merge(on, omean, om2);\n"
                   "        }\n"
                   "    }\n"
                   "    __device__ void block(T (*shared)[3])\n"
                   "    {\n"
                   "        warp();\n"
                   "        if (blockDim.x == 32) return;\n"
                   "        T *own = shared[threadIdx.x / 32];\n"
                   "        if (threadIdx.x % 32 == 0) own[0] = n, own[1] = mean, own[2] = m2;\n"
                   "        __syncthreads();\n"
                   "        if (threadIdx.x == 0)\n"
                   "            for (int w = 1; w < blockDim.x / 32; w++)\n"
                   "                merge(shared[w][0], shared[w][1], shared[w][2]);\n"
                   "    }\n"
                   "};\n"
                   "#endif\n");
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
    buffer_printf(b, "(T)%sx%d[", text_cast(m->x->dtype, OP_F32), m->x_index);
    text_index(b, m->x, m->x->rank, m->x->size, f);
    buffer_puts(b, "]");
}

/* An element of a tensor of channels at the index in the variable `j`. */
static void channel(Buffer *b, const OpTensor *t, int index, const char *j)
{
    buffer_printf(b, "(T)%sx%d[", text_cast(t->dtype, OP_F32), index);
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
    const char *type = c->n_results > 1 ? op_dtype_ctype(c->result[1].dtype) : "T";
    number(b, "    const T eps = ", m->eps, ";\n");
    buffer_printf(b, "    const T var = s.m2 / (T)%lldLL;\n", (long long)m->n);
    if (*saved->mean) buffer_printf(b, "    %s[r] = (%s)s.mean;\n", saved->mean, type);
    if (*saved->rstd) buffer_printf(b, "    %s[r] = (%s)rsqrt(var + eps);\n", saved->rstd, type);
    if (m->results != NORM_UPDATED) return;
    double n = (double)m->n, share[] = {m->share, m->share * n / (n - 1)};
    const OpTensor *t[] = {m->mean, m->var};
    int index[] = {m->mean_index, m->var_index};
    for (int i = 0; i < 2; i++) {
        buffer_printf(b, "    y%d[r] = (%s)(", 3 + i, op_dtype_ctype(c->result[3 + i].dtype));
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

static void add_tensors(RowOperands *o, const Norm *m, int affine_too, int running_too)
{
    row_operand(o, 'x', m->x_index);
    if (affine_too && m->weight) row_operand(o, 'x', m->weight_index);
    if (affine_too && m->bias) row_operand(o, 'x', m->bias_index);
    if (running_too) row_operand(o, 'x', m->mean_index);
    if (running_too) row_operand(o, 'x', m->var_index);
}

/* Layer and RMS norm. */
static int one_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    RowOperands o = {""};
    Saved saved = {"", ""};
    int threads = m->n <= 512 ? 128 : m->n <= 1024 ? 256 : ROW_THREADS;
    const char *type = index_type(m);
    add_tensors(&o, m, 1, 0);
    row_operand(&o, 'y', 0);
    if (c->n_results > 1) {
        saved = (Saved){"y1", "y2"};
        row_operand(&o, 'y', 1);
        row_operand(&o, 'y', 2);
    }
    moments_text(b);
    if (!text_begin(out, c, "layer_norm", o.text, m->rows, threads, err)) return -1;
    buffer_printf(b,
                  "    typedef %s T;\n"
                  "    __shared__ T shared[32][3], row_mean, row_rstd;\n"
                  "    const %s r = blockIdx.x;\n"
                  "    op_moments<T> s = {0, 0, 0};\n",
                  type_of(m), type);
    walk(b, m, "threadIdx.x", threads, m->kind == NORM_RMS ? "s.add_square(" : "s.add(");
    buffer_puts(b, "    s.block(shared);\n    if (threadIdx.x == 0) {\n");
    save(b, c, m, &saved);
    buffer_printf(b,
                  "    row_mean = s.mean;\n    row_rstd = rsqrt(var + eps);\n    }\n"
                  "    __syncthreads();\n"
                  "    const T mean = row_mean, rstd = row_rstd;\n"
                  "#pragma unroll 4\n"
                  "    for (%s j = threadIdx.x; j < %lld; j += %d) {\n"
                  "        const %s f = r * %lld + j;\n"
                  "        y0[f] = (%s)((",
                  type, (long long)m->n, threads, type, (long long)m->n,
                  op_dtype_ctype(c->result[0].dtype));
    element(b, m, "f");
    buffer_puts(b, m->kind == NORM_RMS ? ") * rstd" : " - mean) * rstd");
    affine(b, m);
    buffer_puts(b, "    }\n    (void)mean;\n");
    return text_end(out, err);
}

/* ---- statistics, then elements ---- */

static void result_operands(RowOperands *o, const OpCall *c, const Norm *m, const Saved *saved)
{
    if (m->results == NORM_UPDATED) {
        row_operand(o, 'x', m->mean_index);
        row_operand(o, 'x', m->var_index);
        row_operand(o, 'y', 3);
        row_operand(o, 'y', 4);
    }
    (void)c;
    row_operand_named(o, saved->mean);
    row_operand_named(o, saved->rstd);
}

static int merge_launch(const OpCall *c, const Norm *m, int64_t splits, const int *t,
                        const Saved *saved, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    RowOperands o = {""};
    for (int i = 0; i < 3; i++) row_operand(&o, 't', t[i]);
    result_operands(&o, c, m, saved);
    if (!text_begin(out, c, "moments_merge", o.text, m->rows, 32, err)) return -1;
    buffer_printf(b,
                  "    typedef %s T;\n"
                  "    const int r = blockIdx.x;\n"
                  "    op_moments<T> s = {0, 0, 0};\n"
                  "    for (int k = threadIdx.x; k < %lld; k += 32) {\n"
                  "        const long long i = r * %lldLL + k;\n"
                  "        s.merge(t%d[i], t%d[i], t%d[i]);\n"
                  "    }\n"
                  "    s.warp();\n"
                  "    if (threadIdx.x) return;\n",
                  type_of(m), (long long)splits, (long long)splits, t[0], t[1], t[2]);
    save(b, c, m, saved);
    return text_end(out, err);
}

static int statistics_launch(const OpCall *c, const Norm *m, const Saved *saved, OpPlain *out,
                             Error *err)
{
    Buffer *b = out->source;
    RowOperands o = {""};
    int threads = m->n < ROW_THREADS ? 32 : ROW_THREADS, t[3];
    OpDtype state = m->x->dtype == OP_F64 ? OP_F64 : OP_F32;
    int64_t splits = 1, limit = m->n / ((int64_t)threads * LEAST_A_THREAD);
    char first[48] = "threadIdx.x";
    if (m->kind == NORM_BATCH && m->rows < WANTED_BLOCKS / 2) splits = WANTED_BLOCKS / m->rows;
    if (splits > limit) splits = limit;
    if (splits < 2) splits = 1;
    for (int i = 0; i < 3 && splits > 1; i++)
        if ((t[i] = text_scratch(out, state, m->rows * splits, err)) < 0) return -1;
    row_operand(&o, 'x', m->x_index);
    if (splits == 1)
        result_operands(&o, c, m, saved);
    else
        for (int i = 0; i < 3; i++) row_operand(&o, 't', t[i]);
    moments_text(b);
    OpLaunch *l = text_begin(out, c, "moments", o.text, m->rows, threads, err);
    if (!l) return -1;
    l->grid[1] = splits;
    buffer_printf(b,
                  "    typedef %s T;\n"
                  "    __shared__ T shared[32][3];\n"
                  "    const %s r = blockIdx.x;\n"
                  "    op_moments<T> s = {0, 0, 0};\n",
                  type_of(m), index_type(m));
    if (splits > 1) snprintf(first, sizeof first, "blockIdx.y * %d + threadIdx.x", threads);
    walk(b, m, first, threads * splits, "s.add(");
    buffer_puts(b, "    s.block(shared);\n    if (threadIdx.x) return;\n");
    if (splits == 1) {
        save(b, c, m, saved);
        return text_end(out, err);
    }
    buffer_printf(b,
                  "    const long long at = r * %lldLL + blockIdx.y;\n"
                  "    t%d[at] = s.n;\n    t%d[at] = s.mean;\n    t%d[at] = s.m2;\n",
                  (long long)splits, t[0], t[1], t[2]);
    if (text_end(out, err)) return -1;
    return merge_launch(c, m, splits, t, saved, out, err);
}

static int elements_launch(const OpCall *c, const Norm *m, const Saved *saved, OpPlain *out,
                           Error *err)
{
    Buffer *b = out->source;
    RowOperands o = {""};
    int64_t n = op_elements(m->x);
    const char *type = index_type(m);
    add_tensors(&o, m, 1, !m->own);
    row_operand_named(&o, saved->mean);
    row_operand_named(&o, saved->rstd);
    row_operand(&o, 'y', 0);
    if (!text_each(out, c, "normalize", o.text, n, err)) return -1;
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
    buffer_printf(b, "    (void)j;\n    y0[i] = (%s)((", op_dtype_ctype(c->result[0].dtype));
    element(b, m, "i");
    buffer_puts(b, " - mean) * rstd");
    affine(b, m);
    return text_each_end(out, err);
}

/* Running statistics that are results and do not change. */
static int keep_launch(const OpCall *c, const Norm *m, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    RowOperands o = {""};
    row_operand(&o, 'x', m->mean_index);
    row_operand(&o, 'x', m->var_index);
    row_operand(&o, 'y', 3);
    row_operand(&o, 'y', 4);
    if (!text_each(out, c, "keep", o.text, m->channels, err)) return -1;
    buffer_printf(b, "    typedef %s T;\n    y3[i] = (%s)(", type_of(m),
                  op_dtype_ctype(c->result[3].dtype));
    channel(b, m->mean, m->mean_index, "i");
    buffer_printf(b, ");\n    y4[i] = (%s)(", op_dtype_ctype(c->result[4].dtype));
    channel(b, m->var, m->var_index, "i");
    buffer_puts(b, ");\n");
    return text_each_end(out, err);
}

int norm_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Norm m;
    Saved saved = {"", ""};
    if (norm_of(c, &m, err)) return -1;
    if (m.kind == NORM_LAYER || m.kind == NORM_RMS) return one_launch(c, &m, out, err);
    if (!m.own) {
        if (m.results == NORM_UPDATED && keep_launch(c, &m, out, err)) return -1;
        return elements_launch(c, &m, &saved, out, err);
    }
    if (m.results == NORM_ONE) {
        OpDtype d = m.x->dtype == OP_F64 ? OP_F64 : OP_F32;
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
