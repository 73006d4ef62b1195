/* Products by cuBLASLt: a hash table of plans by shape, each with the heuristic's algorithms. */
#include "gpu/cublaslt.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/cublaslt_api.h"

enum { CHOICES = 8, SLOTS = 2048, PLANS_MAX = 1024, ALIGNMENT_MAX = 256 };

/* Everything on which the choice of an algorithm depends. */
typedef struct {
    int ta, tb, m, n, k, lda, ldb, ldd, wide, adds, ordered;
    int align_a, align_b, align_c, align_d;
} Shape;

typedef struct {
    Shape shape;
    void *operation, *a, *b, *d; /* a and b in the library's order; c has the layout of d */
    CublasltChoice choice[CHOICES];
    int n_choices, chosen, proven; /* proven: it has run */
} Plan;

struct Cublaslt {
    void *handle;
    Plan *slot[SLOTS]; /* by hash, with linear probing */
    int n;
};

static const CublasltApi *lt; /* once opened */

static int check(int status, const char *what, Error *err)
{
    return cublaslt_check(lt, status, what, err);
}

int cublaslt_open(Cublaslt **out, Error *err)
{
    if (!lt && !(lt = cublaslt_api(err))) return -1;
    Cublaslt *c = memory_alloc(sizeof *c);
    if (check(lt->create(&c->handle), "cuBLASLt does not start", err)) {
        free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void plan_free(Plan *p)
{
    if (p->operation) lt->operation_destroy(p->operation);
    if (p->a) lt->layout_destroy(p->a);
    if (p->b) lt->layout_destroy(p->b);
    if (p->d) lt->layout_destroy(p->d);
    free(p);
}

static void drop_plans(Cublaslt *c)
{
    for (int i = 0; i < SLOTS; i++)
        if (c->slot[i]) plan_free(c->slot[i]);
    memset(c->slot, 0, sizeof c->slot);
    c->n = 0;
}

void cublaslt_close(Cublaslt *c)
{
    if (!c) return;
    drop_plans(c);
    lt->destroy(c->handle);
    free(c);
}

/* ---- plans ---- */

/* The alignment of an address. the library derives the alignment of rows from their stride. */
static int alignment(const void *p)
{
    uintptr_t bits = (uintptr_t)p | ALIGNMENT_MAX;
    return (int)(bits & -bits);
}

static Shape shape_of(const CublasltProduct *p)
{
    int adds = p->beta != 0, align_d = alignment(p->d);
    return (Shape){.ta = p->ta != 0,
                   .tb = p->tb != 0,
                   .m = p->m,
                   .n = p->n,
                   .k = p->k,
                   .lda = p->lda,
                   .ldb = p->ldb,
                   .ldd = p->ldd,
                   .wide = p->wide != 0,
                   .adds = adds,
                   .ordered = p->ordered != 0,
                   .align_a = alignment(p->a),
                   .align_b = alignment(p->b),
                   .align_c = adds ? alignment(p->c) : align_d,
                   .align_d = align_d};
}

static int set_preference(void *preference, int which, uint64_t value, size_t bytes, Error *err)
{
    uint32_t word = (uint32_t)value;
    return check(
        lt->preference_set(preference, which, bytes == 4 ? (const void *)&word : &value, bytes),
        "cuBLASLt takes no preference", err);
}

/* Algorithms without a tile are kernels for few rows, which split k between threads. */
static int is_ordered(const CublasltAlgorithm *a)
{
    uint32_t tile = LT_TILE_UNDEFINED;
    int32_t splits = 0;
    size_t written;
    return !lt->algorithm_get(a, LT_ALGORITHM_TILE, &tile, sizeof tile, &written) &&
           tile != LT_TILE_UNDEFINED &&
           !lt->algorithm_get(a, LT_ALGORITHM_SPLITS, &splits, sizeof splits, &written) &&
           splits <= 1;
}

/* Ask the heuristic for algorithms. The library's matrices are column-major: its a is our b (see
 * gpu/cublaslt_api.h), so that the alignments are swapped. */
static int ask(Cublaslt *c, Plan *p, int ordered, Error *err)
{
    const Shape *s = &p->shape;
    const int align[4] = {s->align_b, s->align_a, s->align_c, s->align_d};
    void *preference = NULL;
    if (check(lt->preference_create(&preference), "cuBLASLt takes no preference", err)) return -1;
    int rc = set_preference(preference, LT_PREFERENCE_WORKSPACE, CUBLASLT_WORKSPACE, 8, err);
    if (!rc)
        rc = set_preference(preference, LT_PREFERENCE_REDUCTION,
                            ordered ? LT_REDUCTION_NONE : LT_REDUCTION_COMPUTE_TYPE, 4, err);
    for (int i = 0; i < 4 && !rc; i++)
        rc = set_preference(preference, LT_PREFERENCE_ALIGNMENT_A + i, (uint64_t)align[i], 4, err);
    if (!rc) {
        CublasltChoice found[CHOICES];
        int n = 0, status = lt->heuristic(c->handle, p->operation, p->a, p->b, p->d, p->d,
                                          preference, CHOICES, found, &n);
        if (status && status != LT_NOT_SUPPORTED)
            rc = check(status, "cuBLASLt's heuristic failed", err);
        for (int i = 0; i < n && !status; i++)
            if (!found[i].state && found[i].workspace <= CUBLASLT_WORKSPACE &&
                (!ordered || is_ordered(&found[i].algorithm)))
                p->choice[p->n_choices++] = found[i];
    }
    lt->preference_destroy(preference);
    return rc;
}

/* A shape without an ordered algorithm gets an algorithm of any order. */
static int choose(Cublaslt *c, Plan *p, Error *err)
{
    if (p->shape.ordered && ask(c, p, 1, err)) return -1;
    if (!p->n_choices && ask(c, p, 0, err)) return -1;
    return p->n_choices ? 0 : error_set(err, ERROR_DEVICE, "cuBLASLt has no algorithm");
}

static int describe(Plan *p, Error *err)
{
    const Shape *s = &p->shape;
    const int32_t op_a = s->tb ? LT_OP_T : LT_OP_N, op_b = s->ta ? LT_OP_T : LT_OP_N;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    if (check(lt->operation_create(&p->operation, LT_COMPUTE_32F, LT_32F),
              "cuBLASLt describes no product", err) ||
        check(lt->operation_set(p->operation, LT_DESC_TRANSA, &op_a, sizeof op_a),
              "cuBLASLt does not transpose", err) ||
        check(lt->operation_set(p->operation, LT_DESC_TRANSB, &op_b, sizeof op_b),
              "cuBLASLt does not transpose", err))
        return -1;
    return check(lt->layout_create(&p->a, LT_16BF, s->tb ? k : n, s->tb ? n : k, s->ldb),
                 "cuBLASLt does not lay out b", err) ||
                   check(lt->layout_create(&p->b, LT_16BF, s->ta ? m : k, s->ta ? k : m, s->lda),
                         "cuBLASLt does not lay out a", err) ||
                   check(lt->layout_create(&p->d, s->wide ? LT_32F : LT_16BF, n, m, s->ldd),
                         "cuBLASLt does not lay out d", err)
               ? -1
               : 0;
}

static size_t hash_of(const Shape *s)
{
    uint64_t h = 14695981039346656037u;
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) h = (h ^ p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The plan of a shape. Shapes change with the lengths of batches; a full table is cleared, which
 * costs a few calls of the heuristic. */
static int find_plan(Cublaslt *c, const CublasltProduct *product, Plan **out, Error *err)
{
    const Shape shape = shape_of(product);
    if (c->n == PLANS_MAX) drop_plans(c);
    size_t i = hash_of(&shape) % SLOTS;
    for (; c->slot[i]; i = (i + 1) % SLOTS)
        if (!memcmp(&c->slot[i]->shape, &shape, sizeof shape)) {
            *out = c->slot[i];
            return 0;
        }
    Plan *p = memory_alloc(sizeof *p);
    p->shape = shape;
    if (describe(p, err) || choose(c, p, err)) {
        plan_free(p);
        return -1;
    }
    c->slot[i] = *out = p;
    c->n++;
    return 0;
}

/* ---- products ---- */

static int run(Cublaslt *c, Plan *p, const CublasltProduct *product, void *workspace,
               CuStream stream, Error *err)
{
    for (;;) {
        int status = lt->matmul(
            c->handle, p->operation, &product->alpha, product->b, p->a, product->a, p->b,
            &product->beta, product->beta != 0 ? product->c : product->d, p->d, product->d, p->d,
            &p->choice[p->chosen].algorithm, workspace, CUBLASLT_WORKSPACE, stream);
        if (!status) p->proven = 1;
        if (!status || p->proven || p->chosen + 1 == p->n_choices)
            return check(status, "cuBLASLt refuses a product", err);
        p->chosen++; /* the heuristic may name algorithms that do not run */
    }
}

int cublaslt_product(Cublaslt *c, const CublasltProduct *p, void *workspace, CuStream stream,
                     Error *err)
{
    Plan *plan = NULL;
    if (p->m <= 0 || p->n <= 0) return 0;
    int rc = find_plan(c, p, &plan, err);
    if (!rc) rc = run(c, plan, p, workspace, stream, err);
    if (!rc) return 0;
    return error_prefix(err, "%d x %d x %d (%s%s, rows of %d, %d and %d, %s)", p->m, p->n, p->k,
                        p->ta ? "a'" : "a", p->tb ? " b'" : " b", p->lda, p->ldb, p->ldd,
                        p->wide ? "fp32" : "bf16");
}
