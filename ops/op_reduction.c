/* Kernels of reductions. A block has threads along the outputs and along the reduced elements,
 * whichever lie side by side in memory on threadIdx.x. As in eager PyTorch, a thread reduces an
 * output alone where outputs lie side by side and less than 256 elements make one. Where there are
 * few outputs, several blocks share one: they leave their states in scratch memory, and a second
 * launch merges these, one warp an output. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_reduction.h"
#include "ops/op_text.h"

EMBED(op_reduction_cu, "ops/op_reduction.cu")

enum { THREADS = 512, TARGET_BLOCKS = 528, LEAST_A_THREAD = 16, LEAST_SHARED = 256 };

/* What a kind keeps of the elements that it has seen: up to three fields. */
typedef struct {
    const char *type[3], *name[3], *start[3]; /* type NULL: the arithmetic's */
    int n;
    const char *step, *merge, *value; /* over x and its index i, another state o, N elements */
} StateText;

#define FIRST " || (i < at && (x == v || (x != x && v != v))) || (x != x && v == v)"
#define GREATER "x > v" FIRST
#define LESS "x < v" FIRST
#define INDEXED(first, test)                                                  \
    {                                                                         \
        {NULL, "long long"}, {"v", "at"}, {first, "0x7fffffffffffffffLL"}, 2, \
            "if (" test ") { v = x; at = i; }", "step(o.v, o.at);", "v"       \
    }
#define VALUE(first, step, merge, value)              \
    {                                                 \
        {NULL}, {"v"}, {first}, 1, step, merge, value \
    }
#define VARIANCE "m2 / (N - P > 0 ? N - P : 0)"
#define SPREAD(value)                                                                             \
    {                                                                                             \
        {NULL, NULL, NULL}, {"n", "mean", "m2"}, {"0", "0", "0"}, 3,                              \
            "T d = x - mean; n += 1; mean += d / n; m2 += d * (x - mean);",                       \
            "if (o.n == 0) return; T all = n + o.n, d = o.mean - mean; mean += d * (o.n / all); " \
            "m2 += o.m2 + d * d * (n * o.n / all); n = all;",                                     \
            value                                                                                 \
    }

static const StateText texts[] = {
    [REDUCE_SUM] = VALUE("0", "v += x;", "v += o.v;", "v"),
    [REDUCE_MEAN] = VALUE("0", "v += x;", "v += o.v;", "v / N"),
    [REDUCE_PROD] = VALUE("1", "v *= x;", "v *= o.v;", "v"),
    [REDUCE_MAX] = INDEXED("LOW", GREATER),
    [REDUCE_MIN] = INDEXED("HIGH", LESS),
    [REDUCE_ARGMAX] = INDEXED("LOW", GREATER),
    [REDUCE_ARGMIN] = INDEXED("HIGH", LESS),
    [REDUCE_MAX_AT] = INDEXED("LOW", GREATER),
    [REDUCE_MIN_AT] = INDEXED("HIGH", LESS),
    [REDUCE_NORM] = VALUE("0", "v += x * x;", "v += o.v;", "sqrt(v)"),
    [REDUCE_VAR] = SPREAD(VARIANCE),
    [REDUCE_STD] = SPREAD("sqrt(" VARIANCE ")"),
    [REDUCE_VAR_MEAN] = SPREAD(VARIANCE),
    [REDUCE_STD_MEAN] = SPREAD("sqrt(" VARIANCE ")"),
    [REDUCE_ANY] = VALUE("0", "v = v != 0 || x != 0;", "v = v != 0 || o.v != 0;", "v != 0"),
    [REDUCE_ALL] = VALUE("1", "v = v != 0 && x != 0;", "v = v != 0 && o.v != 0;", "v != 0"),
};

/* The largest and smallest value alone need no index. */
static const StateText largest = VALUE("LOW", "if (x > v || x != x) v = x;",
                                       "if (o.v > v || o.v != o.v) v = o.v;", "v"),
                       smallest = VALUE("HIGH", "if (x < v || x != x) v = x;",
                                        "if (o.v < v || o.v != o.v) v = o.v;", "v");
static const StateText norms[] = {
    VALUE("0", "v += fabs(x);", "v += o.v;", "v"),
    VALUE("0", "v += x != 0;", "v += o.v;", "v"),
    VALUE("0", "x = fabs(x); if (x > v || x != x) v = x;", "if (o.v > v || o.v != o.v) v = o.v;",
          "v"),
    VALUE("HIGH", "x = fabs(x); if (x < v || x != x) v = x;", "if (o.v < v || o.v != o.v) v = o.v;",
          "N ? v : 0"),
    VALUE("0", "v += pow((T)fabs(x), (T)P);", "v += o.v;", "pow(v, (T)(1 / P))"),
};

static StateText text_of(const Reduction *r)
{
    if (r->kind == REDUCE_MAX) return largest;
    if (r->kind == REDUCE_MIN) return smallest;
    if (r->kind != REDUCE_NORM || r->order == 2) return texts[r->kind];
    return norms[r->order == 1 ? 0 : r->order == 0 ? 1 : isinf(r->order) ? 2 + (r->order < 0) : 4];
}

/* How a launch divides the work. */
typedef struct {
    int outer;   /* outputs are on threadIdx.x */
    int along;   /* threads along the reduced elements */
    int outputs; /* of a block */
    int64_t splits;
} Plan;

static int64_t smallest_step(int rank, const int64_t *size, const int64_t *step)
{
    int64_t least = INT64_MAX;
    for (int d = 0; d < rank; d++)
        if (size[d] > 1 && step[d] > 0 && step[d] < least) least = step[d];
    return least;
}

static Plan plan_of(const Reduction *r)
{
    Plan p = {.splits = 1};
    p.outer = smallest_step(r->kept, r->kept_size, r->kept_step) <
                  smallest_step(r->reduced, r->reduced_size, r->reduced_step) &&
              r->outputs > 1;
    p.along = 32;
    if (p.outer)
        p.along = r->inputs < LEAST_SHARED ? 1 : 16;
    else
        while (p.along < THREADS && p.along * 2 <= r->inputs) p.along *= 2;
    p.outputs = p.outer ? THREADS / 16 : p.along >= 128 ? 1 : 128 / p.along;
    if (p.outer && p.along == 1) {
        p.outputs = THREADS;
        while (p.outputs > 32 && p.outputs / 2 >= r->outputs) p.outputs /= 2;
        return p;
    }
    int64_t blocks = (r->outputs + p.outputs - 1) / p.outputs,
            limit = r->inputs / ((int64_t)p.along * LEAST_A_THREAD);
    if (blocks < TARGET_BLOCKS / 2) p.splits = TARGET_BLOCKS / (blocks ? blocks : 1);
    if (p.splits > limit) p.splits = limit;
    if (p.splits < 1) p.splits = 1;
    return p;
}

/* The type of the arithmetic. */
static const char *type_of(const OpCall *c)
{
    int by_input = c->result[0].dtype == DTYPE_B8 || !dtype_is_float(c->result[0].dtype);
    Dtype x = op_tensor(c, 0)->dtype, y = c->result[0].dtype;
    if (!by_input) return text_type(y);
    return dtype_is_float(x) ? text_type(x) : "long long";
}

/* The struct reduce_N of a state. */
static void state_text(Buffer *b, const OpCall *c, const Reduction *r, const StateText *s,
                       int number)
{
    const char *type = type_of(c);
    int whole = !strcmp(type, "long long");
    buffer_printf(b, "struct reduce_%d {\n    typedef %s T;\n", number, type);
    for (int f = 0; f < s->n; f++)
        buffer_printf(b, "    %s %s;\n", s->type[f] ? s->type[f] : "T", s->name[f]);
    buffer_puts(b, "    __device__ void start()\n    {\n        const T LOW = ");
    if (whole)
        buffer_puts(b, "-0x7fffffffffffffffLL - 1, HIGH = 0x7fffffffffffffffLL;\n");
    else
        buffer_puts(b, "(T)-__longlong_as_double(0x7ff0000000000000LL), HIGH = -LOW;\n");
    buffer_puts(b, "        (void)LOW, (void)HIGH;\n");
    for (int f = 0; f < s->n; f++) buffer_printf(b, "        %s = %s;\n", s->name[f], s->start[f]);
    buffer_printf(b,
                  "    }\n"
                  "    __device__ void step(T x, long long i) { %s }\n"
                  "    __device__ void merge(const reduce_%d &o) { %s }\n"
                  "    __device__ void across(int d)\n    {\n        reduce_%d o;\n",
                  s->step, number, s->merge, number);
    for (int f = 0; f < s->n; f++)
        buffer_printf(b, "        o.%s = __shfl_down_sync(0xffffffffu, %s, d);\n", s->name[f],
                      s->name[f]);
    buffer_puts(b, "        merge(o);\n    }\n    __device__ T value() const\n    {\n");
    if (strchr(s->value, 'N'))
        buffer_printf(b, "        const T N = (T)%lldLL;\n", (long long)r->inputs);
    if (strchr(s->value, 'P')) {
        buffer_puts(b, "        const T P = (T)");
        text_number(b, r->order);
        buffer_puts(b, ";\n");
    }
    buffer_printf(b, "        return %s;\n    }\n};\n", s->value);
}

/* The statement that stores the state of output o. */
static void store(Buffer *b, const OpCall *c, const Reduction *r)
{
    int index = r->kind == REDUCE_ARGMAX || r->kind == REDUCE_ARGMIN;
    buffer_printf(b, "y0[o] = (%s)%s;", dtype_ctype(c->result[0].dtype),
                  index ? "s.at" : "s.value()");
    if (c->n_results < 2) return;
    if (reduction_is_spread(r->kind)) /* no elements have no mean */
        buffer_printf(b, " y1[o] = (%s)%s;", dtype_ctype(c->result[1].dtype),
                      r->inputs ? "s.mean" : "s.value()");
    else
        buffer_puts(b, " y1[o] = s.at;");
}

static void shuffles(Buffer *b)
{
    buffer_puts(b, "    for (int d = 16; d; d /= 2) s.across(d);\n");
}

/* Merges the states of the threads along the reduced elements into those with along == 0. */
static void merge_block(Buffer *b, const Plan *p)
{
    if (!p->outer) shuffles(b);
    if (p->along == (p->outer ? 1 : 32)) return;
    int parts = p->outer ? p->along : p->along / 32;
    buffer_printf(b,
                  "    __shared__ state shared[%d];\n"
                  "%s"
                  "    __syncthreads();\n"
                  "    if (along == 0)\n"
                  "      for (int k = 1; k < %d; k++) s.merge(shared[%s]);\n",
                  parts * p->outputs,
                  p->outer ? "    shared[along * 32 + out] = s;\n"
                           : "    if (along % 32 == 0) shared[out * "
                             "PARTS + along / 32] = s;\n",
                  parts, p->outer ? "k * 32 + out" : "out * PARTS + k");
}

/* The loop over a thread's elements, up to the text of an element; its end. Where each carries its index,
 * a thread has four states, as in eager PyTorch, and reads an element of each before it compares. */
static void loop_text(Buffer *b, const char *index, const Plan *p, int batched)
{
    if (batched)
        part_fill(b, op_reduction_cu, "batch", "index=%s;along=%d", index, p->along);
    else
        buffer_printf(b,
                      "#pragma unroll 4\n"
                      "      for (%s i = blockIdx.y * %d + along; i < N; i += STEP)\n"
                      "        s.step(",
                      index, p->along);
}

static const char *loop_end(int batched)
{
    return batched ? "];\n        }\n"
                     "#pragma unroll\n"
                     "        for (int k = 0; k < 4; k++)\n"
                     "          if (first + k * STEP < N) part[k].step(x[k], first + k * STEP);\n"
                     "      }\n"
                     "#pragma unroll\n"
                     "      for (int k = 0; k < 4; k++) s.merge(part[k]);\n"
                     "    }\n"
                   : "], i);\n";
}

/* What both launches are written from. */
typedef struct {
    Reduction r;
    Plan p;
    StateText s;
    int number, t[3]; /* of the first launch; scratch memory by field of the state */
} Launches;

static int first_launch(const Launches *of, OpPlain *out, Error *err)
{
    const OpCall *c = out->call;
    const Reduction *r = &of->r;
    const Plan *p = &of->p;
    const StateText *s = &of->s;
    const int *t = of->t, number = of->number;
    const OpTensor *x = op_tensor(c, 0);
    Buffer *b = out->source;
    char operands[64];
    int narrow = r->inputs < 1 << 30 && r->outputs < 1 << 30 && !text_is_wide(x);
    const char *index = narrow ? "int" : "long long";
    int n = snprintf(operands, sizeof operands, "x%lld", (long long)c->arg[0].integer[0]);
    for (int f = 0; f < (p->splits > 1 ? s->n : c->n_results); f++)
        n += snprintf(operands + n, sizeof operands - (size_t)n, " %c%d", p->splits > 1 ? 't' : 'y',
                      p->splits > 1 ? t[f] : f);
    state_text(b, c, r, s, number);
    OpLaunch *l = text_begin(
        out, &(TextHead){"reduce", operands, (r->outputs + p->outputs - 1) / p->outputs, 32}, err);
    if (!l) return -1;
    l->grid[1] = p->splits;
    l->block[0] = p->outer ? p->outputs : p->along;
    l->block[1] = p->outer ? p->along : p->outputs;
    int batched = s->type[1] && p->outer;
    part_fill(b, op_reduction_cu, "begin",
              "number=%d;parts=%d;out=%c;along=%c;index=%s;outputs=%d;inputs=%lld;step=%lld;all_"
              "outputs=%lld",
              number, p->along / 32, p->outer ? 'x' : 'y', p->outer ? 'y' : 'x', index, p->outputs,
              (long long)r->inputs, (long long)(p->along * p->splits), (long long)r->outputs);
    loop_text(b, index, p, batched);
    buffer_printf(b, "(state::T)%sx%lld[", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    text_strided(b, &(Strided){x->offset, r->kept, r->kept_size, r->kept_step}, "o");
    buffer_puts(b, " + ");
    text_strided(b, &(Strided){0, r->reduced, r->reduced_size, r->reduced_step}, "i");
    buffer_puts(b, loop_end(batched));
    merge_block(b, p);
    buffer_printf(b, "    if (along == 0 && o < %lldLL) { ", (long long)r->outputs);
    if (p->splits == 1)
        store(b, c, r);
    else
        for (int f = 0; f < s->n; f++)
            buffer_printf(b, "t%d[o * %lld + blockIdx.y] = s.%s; ", t[f], (long long)p->splits,
                          s->name[f]);
    buffer_puts(b, " }\n");
    return text_end(out, err);
}

static int second_launch(const Launches *of, OpPlain *out, Error *err)
{
    const OpCall *c = out->call;
    const Reduction *r = &of->r;
    const Plan *p = &of->p;
    const StateText *s = &of->s;
    const int *t = of->t, number = of->number;
    Buffer *b = out->source;
    char operands[64] = "";
    size_t n = 0;
    for (int f = 0; f < s->n; f++)
        n += (size_t)snprintf(operands + n, sizeof operands - n, "t%d ", t[f]);
    snprintf(operands + n, sizeof operands - n, "y0%s", c->n_results > 1 ? " y1" : "");
    if (!text_begin(out, &(TextHead){"merge", operands, (r->outputs + 3) / 4, 128}, err)) return -1;
    part_fill(b, op_reduction_cu, "merge", "number=%d;outputs=%lld;splits=%lld", number,
              (long long)r->outputs, (long long)p->splits);
    for (int f = 0; f < s->n; f++)
        buffer_printf(b, "        other.%s = t%d[o * %lld + k];\n", s->name[f], t[f],
                      (long long)p->splits);
    buffer_puts(b, "        s.merge(other);\n      }\n");
    shuffles(b);
    buffer_printf(b, "    if (threadIdx.x %% 32 == 0 && o < %lldLL) { ", (long long)r->outputs);
    store(b, c, r);
    buffer_puts(b, " }\n");
    return text_end(out, err);
}

int reduction_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Launches k = {.number = out->n};
    if (reduction_of(c, 0, &k.r, err)) return -1;
    k.s = text_of(&k.r);
    k.p = plan_of(&k.r);
    const char *type = type_of(c);
    Dtype d = !strcmp(type, "double") ? DTYPE_F64 : !strcmp(type, "float") ? DTYPE_F32 : DTYPE_I64;
    for (int f = 0; f < k.s.n && k.p.splits > 1; f++) {
        k.t[f] = text_scratch(out, k.s.type[f] ? DTYPE_I64 : d, k.r.outputs * k.p.splits, err);
        if (k.t[f] < 0) return -1;
    }
    if (first_launch(&k, out, err)) return -1;
    return k.p.splits > 1 ? second_launch(&k, out, err) : 0;
}
