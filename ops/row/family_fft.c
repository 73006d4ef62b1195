/* Fourier transforms along the last dimension. Complex numbers are pairs of real numbers along a last
 * dimension of two: the overload "pairs" is PyTorch's operator of that name with torch.view_as_real around
 * its complex tensor, for the last dimension alone. Normalization is 0, 1 (by the root of n) or 2 (by n).
 * Stages of radix 4, then of prime radices, take a row of any length. Kernels are of Quern's own: a row that
 * fits lies in shared memory, a longer one in scratch memory, with a launch a stage. Eager PyTorch calls
 * cuFFT. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "ops/op_element.h"
#include "ops/op_text.h"
#include "ops/row/op_fft.h"

EMBED(op_fft_cu, "ops/row/family_fft.cu")

enum { MAX_FACTORS = 32, MAX_LENGTH = 1 << 24, THREADS = 256, SHARED_BYTES = 48 << 10 };

typedef enum { FFT_R2C, FFT_C2C, FFT_C2R } FftKind;

typedef struct {
    FftKind kind;
    int64_t rows, n, kept; /* kept: elements of a row of results */
    int64_t taken, given;  /* numbers of a row of the input, of the results */
    int sign;              /* of the exponent */
    double scale;
    int factors, factor[MAX_FACTORS];
} Fft;

static void find_factors(Fft *f)
{
    int64_t rest = f->n;
    for (; rest % 4 == 0; rest /= 4) f->factor[f->factors++] = 4;
    for (int64_t p = 2; rest > 1; p = p * p > rest ? rest : p + 1)
        for (; rest % p == 0; rest /= p) f->factor[f->factors++] = (int)p;
}

static int fft_of(const OpCall *c, Fft *f, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const int64_t by = c->arg[1].integer[0], last = c->arg[2].integer[0];
    *f = (Fft){.kind = *(const FftKind *)c->op->detail};
    const int pairs = f->kind != FFT_R2C;
    if (!dtype_is_float(x->dtype) || dtype_size(x->dtype) < 2)
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         dtype_name(x->dtype));
    if (x->rank < 1 + pairs || (pairs && x->size[x->rank - 1] != 2))
        return error_set(err, ERROR_INVALID, "expected a tensor%s",
                         pairs ? " of pairs" : " of rank 1 or more");
    if (by < 0 || by > 2)
        return error_set(err, ERROR_INVALID, "a normalization of 0, 1 or 2, found %lld",
                         (long long)by);
    const int64_t size = x->size[x->rank - 1 - pairs];
    f->n = f->kind == FFT_C2R ? last : size;
    if (f->n < 1 || f->n > MAX_LENGTH)
        return error_set(err, ERROR_LIMIT, "a length of %lld, 1 to %d expected", (long long)f->n,
                         MAX_LENGTH);
    if (f->kind == FFT_C2R && size != f->n / 2 + 1)
        return error_set(err, ERROR_INVALID, "a length of %lld has %lld pairs, found %lld",
                         (long long)f->n, (long long)f->n / 2 + 1, (long long)size);
    f->rows = op_elements(x) / (size * (pairs ? 2 : 1));
    f->kept = f->kind == FFT_R2C && last ? f->n / 2 + 1 : f->n;
    f->taken = size * (pairs ? 2 : 1);
    f->given = f->kept * (f->kind == FFT_C2R ? 1 : 2);
    f->sign = f->kind == FFT_R2C || (f->kind == FFT_C2C && last) ? -1 : 1;
    f->scale = by == 0 ? 1 : by == 1 ? 1 / sqrt((double)f->n) : 1 / (double)f->n;
    find_factors(f);
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t size[OP_MAX_RANK];
    int rank = x->rank;
    Fft f;
    if (fft_of(c, &f, err)) return -1;
    memcpy(size, x->size, sizeof size);
    if (f.kind == FFT_R2C && rank == OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "a rank of less than %d expected", OP_MAX_RANK);
    if (f.kind == FFT_R2C) size[rank++] = 2;
    if (f.kind == FFT_C2R) rank--;
    size[f.kind == FFT_C2R ? rank - 1 : rank - 2] = f.kept;
    return op_result(c, x->dtype, rank, size, err);
}

static void cost(const OpCall *c, OpCost *out)
{
    Error ignored;
    Fft f;
    if (fft_of(c, &f, &ignored)) return;
    out->flops = (f.kind == FFT_C2C ? 5 : 2.5) * (double)f.n * log2((double)f.n) * (double)f.rows;
}

/* ---- reference ---- */

typedef struct {
    double *root, *from, *to; /* n pairs each */
} Work;

static Work work_make(const Fft *f)
{
    Work w = {memory_array((size_t)f->n * 2, sizeof(double)),
              memory_array((size_t)f->n * 2, sizeof(double)),
              memory_array((size_t)f->n * 2, sizeof(double))};
    for (int64_t k = 0; k < f->n; k++) {
        /* the angle within a quadrant, and turns of it */
        const int64_t quadrant = (4 * k + f->n / 2) / f->n;
        const double part = M_PI_2 * (double)(4 * k - quadrant * f->n) / (double)f->n,
                     turned[4] = {cos(part), -sin(part), -cos(part), sin(part)};
        w.root[2 * k] = turned[quadrant % 4];
        w.root[2 * k + 1] = f->sign * turned[(quadrant + 3) % 4];
    }
    return w;
}

static void work_release(Work *w)
{
    free(w->root);
    free(w->from);
    free(w->to);
}

static void load(const Fft *f, const double *x, double *to)
{
    for (int64_t k = 0; k < f->n; k++) {
        const int64_t m = f->kind == FFT_C2R && k > f->n / 2 ? f->n - k : k;
        to[2 * k] = f->kind == FFT_R2C ? x[k] : x[2 * m];
        to[2 * k + 1] = f->kind == FFT_R2C ? 0 : m == k ? x[2 * m + 1] : -x[2 * m + 1];
    }
}

/* Output e of a stage: the sum of r runs' elements, times powers of a root. */
static void stage_element(const Fft *f, const Work *w, int64_t run, int64_t r, int64_t e)
{
    const int64_t t = e % (run * r), j = e / (run * r) * run + t % run,
                  step = t * (f->n / (run * r));
    double re = 0, im = 0;
    for (int64_t q = 0, at = 0; q < r; q++) {
        const double *x = w->from + 2 * (j + q * (f->n / r)), *v = w->root + 2 * at;
        re += x[0] * v[0] - x[1] * v[1];
        im += x[0] * v[1] + x[1] * v[0];
        at += step;
        if (at >= f->n) at -= f->n;
    }
    w->to[2 * e] = re;
    w->to[2 * e + 1] = im;
}

static void transform(const Fft *f, Work *w, const double *x, double *y)
{
    load(f, x, w->from);
    for (int64_t s = 0, run = 1; s < f->factors; run *= f->factor[s++]) {
        for (int64_t e = 0; e < f->n; e++) stage_element(f, w, run, f->factor[s], e);
        double *last = w->from;
        w->from = w->to;
        w->to = last;
    }
    for (int64_t i = 0; i < f->given; i++)
        y[i] = f->scale * w->from[f->kind == FFT_C2R ? 2 * i : i];
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Fft f;
    if (fft_of(c, &f, err)) return -1;
#pragma omp parallel if (f.rows * f.n >= 1 << 14)
    {
        Work w = work_make(&f);
#pragma omp for
        for (int64_t r = 0; r < f.rows; r++)
            transform(&f, &w, x + r * f.taken, out[0] + r * f.given);
        work_release(&w);
    }
    return 0;
}

/* ---- running sums ---- */

static void direct_element(const Fft *f, const Work *w, int64_t k, double *y)
{
    float re = 0, im = 0;
    for (int64_t i = 0, at = 0; i < f->n; i++, at = (at + k) % f->n) {
        const float a = (float)w->from[2 * i], b = (float)w->from[2 * i + 1],
                    c = (float)w->root[2 * at], s = (float)w->root[2 * at + 1];
        re += a * c - b * s;
        im += a * s + b * c;
    }
    y[0] = f->scale * (double)re;
    if (f->kind != FFT_C2R) y[1] = f->scale * (double)im;
}

void fft_direct(const OpCall *c, const double *x, double *y, int64_t products)
{
    Error ignored;
    Fft f;
    if (fft_of(c, &f, &ignored)) return;
    Work w = work_make(&f);
    const int64_t all = f.rows * f.kept, most = products / f.n + 1,
                  step = all > most ? all / most | 1 : 1;
    for (int64_t e = 0, have = -1; e < all; e += step) {
        const int64_t r = e / f.kept, k = e % f.kept;
        if (r != have) load(&f, x + r * f.taken, w.from);
        have = r;
        direct_element(&f, &w, k, y + r * f.given + k * (f.kind == FFT_C2R ? 1 : 2));
    }
    work_release(&w);
}

/* ---- single elements: each needs its row ---- */

static void element_rows(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row)
{
    Error ignored;
    Fft f;
    (void)result;
    if (fft_of(c, &f, &ignored)) return; /* never: the call has been inferred */
    for (int64_t k = 0; k < n; k++) row[k] = at[k] / f.given;
}

static void element_needs(const OpCall *c, const OpSome *some, const OpNeeds *out)
{
    Error ignored;
    Fft f;
    if (fft_of(c, &f, &ignored)) return;
    for (int64_t k = 0; k < some->n; k++) {
        const int64_t row = some->at[k] / f.given;
        if (k && some->at[k - 1] / f.given == row) continue;
        out->add(out->of, (int)c->arg[0].integer[0], row * f.taken, 1, f.taken);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *some, double *y)
{
    const double *x = in[c->arg[0].integer[0]];
    Error ignored;
    Fft f;
    if (fft_of(c, &f, &ignored)) return;
    Work w = work_make(&f);
    double *whole = memory_array((size_t)f.given, sizeof *whole);
    for (int64_t k = 0, have = -1; k < some->n; k++) {
        const int64_t row = some->at[k] / f.given;
        if (row != have) transform(&f, &w, x + row * f.taken, whole);
        have = row;
        y[k] = whole[some->at[k] % f.given];
    }
    free(whole);
    work_release(&w);
}

static const OpElements elements = {element_needs, element_compute, element_rows, NULL};

/* ---- kernels ---- */

typedef struct {
    const Fft *f;
    OpPlain *out;
    Dtype computed;
    const char *type; /* of `computed` */
} Kernel;

static void put_pair(const Kernel *k)
{
    part_fill(k->out->source, op_fft_cu, "pair", "type=%s", k->type);
}

/* `v` from the input, for the element k of the row `row`. */
static void put_read(const Kernel *k)
{
    const OpCall *c = k->out->call;
    const OpTensor *x = op_tensor(c, 0);
    Buffer text;
    buffer_init(&text, PART_VALUE);
    buffer_printf(&text, "%sx%lld[", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    text_index(&text, x, x->rank, x->size, "i");
    buffer_puts(&text, "]");
    part_fill(k->out->source, op_fft_cu, "read", "type=%s;x=%s", k->type, text.data);
    buffer_release(&text);
}

static void put_load(const Kernel *k)
{
    static const char *const parts[] = {"load_r2c", "load_c2c", "load_c2r"};
    part_fill(k->out->source, op_fft_cu, parts[k->f->kind], "type=%s;n=%lld", k->type,
              (long long)k->f->n);
}

static void put_store(const Kernel *k)
{
    Buffer scale;
    buffer_init(&scale, PART_VALUE);
    text_number(&scale, k->f->scale);
    part_fill(k->out->source, op_fft_cu, k->f->kind == FFT_C2R ? "store_reals" : "store_pairs",
              "type=%s;stored=%s;n=%lld;out=%lld;scale=%s", k->type,
              dtype_ctype(k->out->call->result[0].dtype), (long long)k->f->n, (long long)k->f->kept,
              scale.data);
    buffer_release(&scale);
}

static int block_launch(const Kernel *k, Error *err)
{
    const Fft *f = k->f;
    Buffer *b = k->out->source;
    const int64_t pair = 2 * (int64_t)dtype_size(k->computed);
    int threads = 1, high = 1;
    while (threads < f->n && threads < THREADS) threads *= 2;
    while (threads * high < THREADS && high < f->rows &&
           (1 + 4 * high) * f->n * pair <= SHARED_BYTES)
        high *= 2;
    OpLaunch *l =
        text_begin(k->out, &(TextHead){"fft", NULL, (f->rows + high - 1) / high, threads}, err);
    if (!l) return -1;
    l->block[1] = high;
    put_pair(k);
    put_read(k);
    part_fill(b, op_fft_cu, "block", "places=%lld;n=%lld;type=%s;sign=%d;rows=%lld",
              (long long)((1 + 2 * high) * f->n), (long long)f->n, k->type, f->sign,
              (long long)f->rows);
    put_load(k);
    part_put(b, op_fft_cu, "block_loaded");
    for (int s = 0, run = 1; s < f->factors; run *= f->factor[s++])
        part_fill(b, op_fft_cu, "block_stage", "n=%lld;rows=%lld;type=%s;run=%d;radix=%d",
                  (long long)f->n, (long long)f->rows, k->type, run, f->factor[s]);
    part_fill(b, op_fft_cu, "block_end", "n=%lld;rows=%lld", (long long)f->n, (long long)f->rows);
    put_store(k);
    buffer_puts(b, "    }\n");
    return text_end(k->out, err);
}

/* Scratch memory of rows that are longer than a block's: the roots, and two buffers for all rows. */
typedef struct {
    int roots, from, to;
} Places;

static int places_make(const Kernel *k, Places *p, Error *err)
{
    const Dtype d = k->computed;
    const int64_t all = 2 * k->f->n * k->f->rows;
    p->roots = text_scratch(k->out, d, 2 * k->f->n, err);
    p->from = p->roots < 0 ? -1 : text_scratch(k->out, d, all, err);
    p->to = p->from < 0 ? -1 : text_scratch(k->out, d, all, err);
    return p->to < 0 ? -1 : 0;
}

static int begin_rows(const Kernel *k, const char *operands, Error *err)
{
    if (!text_each(k->out, "fft", operands, k->f->n * k->f->rows, err)) return -1;
    put_pair(k);
    part_fill(k->out->source, op_fft_cu, "row", "n=%lld", (long long)k->f->n);
    return 0;
}

static int ends_launches(const Kernel *k, const Places *p, Error *err)
{
    char operands[64];
    Buffer *b = k->out->source;
    snprintf(operands, sizeof operands, "t%d", p->roots);
    if (!text_each(k->out, "roots", operands, k->f->n, err)) return -1;
    put_pair(k);
    part_fill(b, op_fft_cu, "roots", "roots=%d;type=%s;n=%lld;sign=%d", p->roots, k->type,
              (long long)k->f->n, k->f->sign);
    if (text_each_end(k->out, err)) return -1;
    snprintf(operands, sizeof operands, "x%lld t%d", (long long)k->out->call->arg[0].integer[0],
             p->from);
    if (begin_rows(k, operands, err)) return -1;
    put_read(k);
    put_load(k);
    part_fill(b, op_fft_cu, "loaded", "to=%d", p->from);
    return text_each_end(k->out, err);
}

static int stage_launch(const Kernel *k, const Places *p, int run, int radix, Error *err)
{
    char operands[64];
    snprintf(operands, sizeof operands, "t%d t%d t%d", p->roots, p->from, p->to);
    if (begin_rows(k, operands, err)) return -1;
    part_fill(k->out->source, op_fft_cu, "stage",
              "roots=%d;from=%d;to=%d;type=%s;n=%lld;run=%d;radix=%d", p->roots, p->from, p->to,
              k->type, (long long)k->f->n, run, radix);
    return text_each_end(k->out, err);
}

static int long_launches(const Kernel *k, Error *err)
{
    char operands[64];
    Places p;
    if (places_make(k, &p, err) || ends_launches(k, &p, err)) return -1;
    for (int s = 0, run = 1; s < k->f->factors; run *= k->f->factor[s++]) {
        if (stage_launch(k, &p, run, k->f->factor[s], err)) return -1;
        p = (Places){p.roots, p.to, p.from};
    }
    snprintf(operands, sizeof operands, "t%d y0", p.from);
    if (begin_rows(k, operands, err)) return -1;
    part_fill(k->out->source, op_fft_cu, "stored", "from=%d", p.from);
    put_store(k);
    return text_each_end(k->out, err);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Fft f;
    if (fft_of(c, &f, err)) return -1;
    const Dtype d = op_tensor(c, 0)->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    const Kernel k = {&f, out, d, text_type(d)};
    part_put(out->source, op_fft_cu, "functions");
    return 3 * f.n * 2 * (int64_t)dtype_size(d) <= SHARED_BYTES ? block_launch(&k, err)
                                                                : long_launches(&k, err);
}

#define ROW(name, last, kind)                                                                    \
    {                                                                                            \
        "aten." name ".pairs", "Tensor self, int normalization, " last, infer, reference, plain, \
            cost, 0, &(const FftKind){kind}, NULL, &elements                                     \
    }

static const Op table[] = {
    ROW("_fft_r2c", "bool onesided", FFT_R2C),
    ROW("_fft_c2c", "bool forward", FFT_C2C),
    ROW("_fft_c2r", "int last_dim_size", FFT_C2R),
};

const OpFamily fft_family = {"fft", table, sizeof table / sizeof *table};
