/* Running largest and smallest values along one dimension with their indices, the last one of equals. A row
 * in one piece belongs to 16 threads of a block of 32 rows, which combine 32 elements at a time in shared
 * memory and carry the last one on, as eager PyTorch does it; a row across memory belongs to a thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_extreme_cu, "ops/row/family_extreme.cu")

enum { ALONG = 16, HIGH = 32, MOST_THREADS = 512 };

typedef struct {
    int least;
    int64_t rows, n, inner;
} Extreme;

static int extreme_of(const OpCall *c, Extreme *s, Error *err)
{
    *s = (Extreme){.least = *(const int *)c->op->detail};
    return op_rows(op_tensor(c, 0), c->arg[1].integer[0], &s->rows, &s->n, &s->inner, err);
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Extreme s;
    if (extreme_of(c, &s, err)) return -1;
    if (x->dtype == DTYPE_B8) return error_set(err, ERROR_UNSUPPORTED, "a scan of bool");
    if (s.n > INT32_MAX) return error_set(err, ERROR_LIMIT, "a row of more than 2^31 elements");
    return op_result(c, x->dtype, x->rank, x->size, err) ||
                   op_result(c, DTYPE_I64, x->rank, x->size, err)
               ? -1
               : 0;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Extreme s;
    if (extreme_of(c, &s, err)) return -1;
#pragma omp parallel for if (s.rows * s.n >= 1 << 16)
    for (int64_t r = 0; r < s.rows; r++) {
        int64_t at = r / s.inner * s.n * s.inner + r % s.inner, place = 0;
        double best = s.n ? x[at] : 0;
        for (int64_t i = 0; i < s.n; i++, at += s.inner) {
            int better = s.least ? x[at] <= best : x[at] >= best;
            if (isnan(x[at]) || (!isnan(best) && better)) best = x[at], place = i;
            out[0][at] = best;
            out[1][at] = (double)place;
        }
    }
    return 0;
}

/* ---- kernels ---- */

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const char *type = text_type(x->dtype), *stored = dtype_ctype(x->dtype);
    int whole = !dtype_is_float(x->dtype);
    char name[24], place[48], operands[160];
    Buffer *b = out->source;
    Extreme s;
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (extreme_of(c, &s, err) || text_dense(out, name, x, place, sizeof place, err)) return -1;
    int across = s.inner > 1;
    int64_t outer = s.inner ? s.rows / s.inner : 0,
            blocks = across ? outer : (s.rows + HIGH - 1) / HIGH;
    int threads = !across ? ALONG : s.inner < MOST_THREADS ? (int)s.inner : MOST_THREADS;
    snprintf(operands, sizeof operands, "%.*s y0 y1 rows:%lld n=%lld inner:%lld",
             (int)strcspn(place, " "), place, (long long)s.rows, (long long)s.n,
             (long long)s.inner);
    part_put(b, op_extreme_cu, "functions");
    OpLaunch *l = text_begin(
        out, &(TextHead){"extreme", operands, blocks < 65535 ? blocks : 65535, threads}, err);
    if (!l) return -1;
    if (across)
        l->grid[1] = (s.inner + threads - 1) / threads;
    else
        l->block[1] = HIGH;
    buffer_printf(b,
                  "    typedef %s T;\n    typedef %s S;\n    constexpr int LEAST = %d;\n"
                  "    const T NONE = %s%s;\n"
                  "    const %s *x = %s;\n",
                  type, stored, s.least, s.least ? "" : "-",
                  whole ? "0x7fffffffffffffffLL" : "(T)__longlong_as_double(0x7ff0000000000000LL)",
                  stored, place);
    if (!across)
        buffer_puts(b,
                    "    __shared__ T values[32][32];\n    __shared__ long long places[32][32];\n"
                    "    const int lane = threadIdx.x;\n    (void)inner;\n");
    part_put(b, op_extreme_cu, across ? "across" : "along");
    return text_end(out, err);
}

#define ROW(aten, least)                                                                    \
    {                                                                                       \
        "aten." aten, "Tensor self, int dim", infer, reference, plain, op_cost_elements, 0, \
            &(const int){least}, NULL                                                       \
    }

static const Op table[] = {ROW("cummax.default", 0), ROW("cummin.default", 1)};

const OpFamily extreme_family = {"extreme", table, sizeof table / sizeof *table};
