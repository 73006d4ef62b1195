/* One call per operation and a common loop that times it. */
#include "tests/bench/model/bench_kernels.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

enum { ARRAYS = 6, ROUNDS = 5, POSITIONS = 2048, PARAMS = 1 << 25, BLOCK_BYTES = 1 << 24 };
static const size_t CACHED = (size_t)256 << 20; /* five times the largest cache of a GPU */

typedef struct {
    const Ops *op;
    const KernelShape *s;
    int row;       /* of attention's heads */
    size_t params; /* elements of the optimiser's tensor */
    BatchView view;
    const float *angles; /* used as cosines and as sines */
    const float *weight; /* [rows] */
    const int32_t *target;
    void *p[ARRAYS]; /* arrays of this call */
} Bench;

typedef struct {
    const char *name;
    size_t sizes[ARRAYS]; /* bytes of the arrays */
    double bytes;
    void (*call)(const Bench *b);
} Case;

static const float EPS = 1e-6f;

static void call_add(const Bench *b)
{
    b->op->add(b->p[0], b->p[1], (size_t)b->s->rows * (size_t)b->s->hidden);
}

static Norm rows_of(const Bench *b, const void *x, const Num *w)
{
    return (Norm){x, w, b->s->rows, 1, b->s->hidden, b->s->hidden, EPS};
}

static Norm heads_of(const Bench *b, const void *x, const Num *w)
{
    return (Norm){x, w, b->s->rows, b->s->heads.heads, b->s->heads.dim, b->row, EPS};
}

static void call_rmsnorm(const Bench *b)
{
    Norm v = rows_of(b, b->p[1], b->p[2]);
    b->op->rmsnorm(b->p[0], &v);
}

static void call_rmsnorm_grad(const Bench *b)
{
    Norm v = rows_of(b, b->p[2], b->p[3]);
    b->op->rmsnorm_grad(b->p[0], 1, (float *)b->p[4], b->p[1], &v);
}

static void call_rmsnorm_grad_frozen(const Bench *b)
{
    Norm v = rows_of(b, b->p[2], b->p[3]);
    b->op->rmsnorm_grad(b->p[0], 1, NULL, b->p[1], &v);
}

static void call_head_norm(const Bench *b)
{
    Norm v = heads_of(b, b->p[0], b->p[1]);
    b->op->head_norm(b->p[0], &v);
}

static void call_head_norm_grad(const Bench *b)
{
    Norm v = heads_of(b, b->p[1], b->p[2]);
    b->op->head_norm_grad(b->p[0], (float *)b->p[3], b->p[0], &v);
}

static void call_rope(const Bench *b)
{
    Rotation r = {b->view.pos, b->angles, b->angles, b->s->rows};
    b->op->rope(b->p[0], &r, b->s->heads, 1);
}

static void call_bias_grad(const Bench *b)
{
    b->op->bias_grad((float *)b->p[0], b->p[1], b->s->rows, b->row);
}
static void call_swiglu(const Bench *b)
{
    b->op->swiglu(b->p[0], b->p[1], b->s->rows, b->s->ff);
}
static void call_swiglu_grad(const Bench *b)
{
    b->op->swiglu_grad(b->p[0], b->p[1], b->p[2], b->s->rows, b->s->ff);
}
static void call_embed(const Bench *b)
{
    b->op->embed((float *)b->p[0], b->p[1], b->view.ids, b->s->rows, b->s->hidden);
}
static void call_embed_grad(const Bench *b)
{
    b->op->embed_grad((float *)b->p[0], b->p[1], &b->view, b->s->hidden);
}

static Logits logits_of(const Bench *b)
{
    return (Logits){(float *)b->p[0], b->target, b->s->loss_rows, b->s->vocab};
}

static void call_cross_entropy(const Bench *b)
{
    Logits l = logits_of(b);
    b->op->cross_entropy((float *)b->p[1], (float *)b->p[2], &l);
}

static void call_cross_entropy_grad(const Bench *b)
{
    Logits l = logits_of(b);
    b->op->cross_entropy_grad(b->p[0], (float *)b->p[1], b->weight, &l);
}

static void call_sum_squares(const Bench *b)
{
    b->op->sum_squares((float *)b->p[0], b->params);
}

static AdamStep adam_step(int lean)
{
    return (AdamStep){.lr = 1e-5,
                      .beta1 = 0.9,
                      .beta2 = 0.99,
                      .eps = 1e-8,
                      .scale = 1,
                      .correct1 = 0.1,
                      .correct2 = 0.01,
                      .lean = lean};
}

static void call_adamw(const Bench *b)
{
    AdamStep s = adam_step(0);
    AdamSlice a = {b->p[0], (float *)b->p[1], (float *)b->p[2], b->p[3], b->p[4], b->params};
    b->op->adamw(&a, &s);
}

static void call_adamw_lean(const Bench *b)
{
    AdamStep s = adam_step(1);
    AdamSlice a = {b->p[0], NULL, (float *)b->p[1], b->p[2], b->p[3], b->params};
    b->op->adamw(&a, &s);
}

/* ---- the common loop ---- */

/* Fill with positive numbers below 1, valid both as Nums and as floats: the upper half of a float
 * is such a Num. */
static void fill(const Ops *op, char *to, size_t bytes)
{
    size_t first = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES, n = first / (size_t)op->num;
    float *block = memory_array(n + 1, sizeof *block);
    for (size_t i = 0; i < n; i++) block[i] = 0.25f + (float)(i * 2654435761u % 4096) / 8192.0f;
    op->load(to, block, n);
    for (size_t at = first; at < bytes; at *= 2)
        op->copy(to + at, to, at < bytes - at ? at : bytes - at);
    free(block);
}

static const int32_t *sorted_ids;

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return sorted_ids[x] != sorted_ids[y]
               ? (sorted_ids[x] > sorted_ids[y]) - (sorted_ids[x] < sorted_ids[y])
               : (x > y) - (x < y);
}

static void *upload_new(const Ops *op, const void *host, size_t bytes)
{
    void *p = op->alloc(bytes);
    op->upload(p, host, bytes);
    return p;
}

/* Make a batch in which every eighth row has the same id, as line ends do. */
static void make_view(Bench *b)
{
    const Ops *op = b->op;
    int rows = b->s->rows;
    size_t n = (size_t)rows;
    int32_t *ids = memory_array(n, sizeof *ids), *pos = memory_array(n, sizeof *pos),
            *order = memory_array(n, sizeof *order);
    int32_t *run = memory_array(n + 1, sizeof *run);
    for (int r = 0; r < rows; r++) {
        ids[r] = r % 8 ? (int32_t)((int64_t)r * 7919 % b->s->vocab) : 198 % b->s->vocab;
        pos[r] = r % POSITIONS;
        order[r] = r;
    }
    sorted_ids = ids;
    qsort(order, n, sizeof *order, by_id);
    int runs = 0;
    for (int r = 0; r < rows; r++)
        if (!r || ids[order[r]] != ids[order[r - 1]]) run[runs++] = r;
    run[runs] = rows;
    b->view = (BatchView){.rows = rows,
                          .ids = upload_new(op, ids, n * 4),
                          .pos = upload_new(op, pos, n * 4),
                          .order = upload_new(op, order, n * 4),
                          .run = upload_new(op, run, (size_t)(runs + 1) * 4),
                          .runs = runs};
    b->target = b->view.ids;
    free(ids), free(pos), free(order), free(run);
}

static void drop_view(Bench *b)
{
    const void *all[] = {b->view.ids, b->view.pos, b->view.order,
                         b->view.run, b->angles,   b->weight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) b->op->release((void *)(uintptr_t)all[i]);
}

/* Returns the seconds of a call, or -1. */
static double measure(Bench *b, const Case *c, Error *err)
{
    size_t set = 0, at[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) at[i] = set, set += (c->sizes[i] + 255) / 256 * 256;
    size_t copies = CACHED / set + 1;
    char *arena = b->op->alloc(set * copies);
    double best = -1;
    if (b->op->status(err)) return -1;
    fill(b->op, arena, set * copies);
    for (int round = -1; round < ROUNDS; round++) { /* round -1 is not counted */
        size_t calls = copies > 4 ? copies : 4;
        if (b->op->status(err)) break;
        double begin = clock_seconds();
        for (size_t k = 0; k < calls; k++) {
            for (int i = 0; i < ARRAYS; i++) b->p[i] = arena + k % copies * set + at[i];
            c->call(b);
        }
        if (b->op->status(err)) {
            best = -1;
            break;
        }
        double t = (clock_seconds() - begin) / (double)calls;
        if (round >= 0 && (best < 0 || t < best)) best = t;
    }
    b->op->release(arena);
    return best;
}

int bench_kernels(const Ops *op, const KernelShape *s, KernelTime out[KERNEL_TIMES_MAX], Error *err)
{
    Bench b = {.op = op, .s = s, .row = head_row(s->heads), .params = PARAMS};
    size_t z = (size_t)op->num, rows = (size_t)s->rows, h = (size_t)s->hidden, ff = (size_t)s->ff,
           row = (size_t)b.row;
    size_t x = rows * h * z, wide = rows * h * 4, glu = rows * ff * z, qkv = rows * row * z,
           w = h * 4, n = PARAMS;
    size_t q = rows * (size_t)(s->heads.heads * s->heads.dim) * z,
           k = q / (size_t)s->heads.heads * (size_t)s->heads.kv_heads;
    size_t logits = (size_t)s->loss_rows * (size_t)s->vocab * 4, few = (size_t)s->loss_rows * 4,
           table = (size_t)s->vocab * h;
    make_view(&b);
    size_t runs = (size_t)b.view.runs * h * 8;
    const Case cases[] = {
        {"add", {x, x}, 3.0 * (double)x, call_add},
        {"rmsnorm", {x, wide, w}, (double)(x + wide), call_rmsnorm},
        {"rmsnorm_grad", {x, x, wide, w, w}, (double)(3 * x + wide), call_rmsnorm_grad},
        {"rmsnorm_grad, w frozen",
         {x, x, wide, w},
         (double)(3 * x + wide),
         call_rmsnorm_grad_frozen},
        {"head_norm", {qkv, w}, 2.0 * (double)q, call_head_norm},
        {"head_norm_grad", {qkv, qkv, w, w}, 3.0 * (double)q, call_head_norm_grad},
        {"rope", {qkv}, 2.0 * (double)(q + k), call_rope},
        {"bias_grad", {row * 4, qkv}, (double)qkv, call_bias_grad},
        {"swiglu", {glu, 2 * glu}, 3.0 * (double)glu, call_swiglu},
        {"swiglu_grad", {2 * glu, glu, 2 * glu}, 5.0 * (double)glu, call_swiglu_grad},
        {"embed", {wide, table * z}, (double)(x + wide), call_embed},
        {"embed_grad", {table * 4, x}, (double)(x + runs), call_embed_grad},
        {"cross_entropy", {logits, few, few}, (double)logits, call_cross_entropy},
        {"cross_entropy_grad",
         {logits, few},
         (double)logits * (1 + (double)z / 4),
         call_cross_entropy_grad},
        {"sum_squares (waits)", {n * 4}, 4.0 * (double)n, call_sum_squares},
        {"adamw", {n * z, n * 4, n * 4, n * 4, n * 4}, (32.0 + (double)z) * (double)n, call_adamw},
        {"adamw, lean",
         {n * z, n * 4, n * z, n * z},
         (8 + 6.0 * (double)z) * (double)n,
         call_adamw_lean},
    };
    size_t angles = (size_t)POSITIONS * (size_t)s->heads.dim / 2,
           count = sizeof cases / sizeof *cases;
    float *host = memory_array(angles > rows ? angles : rows, sizeof *host);
    for (size_t i = 0; i < (angles > rows ? angles : rows); i++) host[i] = 0.7f;
    b.angles = upload_new(op, host, angles * 4), b.weight = upload_new(op, host, rows * 4);
    free(host);
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        out[i] = (KernelTime){cases[i].name, cases[i].bytes, measure(&b, &cases[i], err)};
        rc = out[i].seconds < 0 ? -1 : 0;
    }
    drop_view(&b);
    return rc ? rc : (int)count;
}
