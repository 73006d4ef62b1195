/* Launchers of attention.cu and attention_grad.cu. */
#include <math.h>

#include "model/cuda/launch_shape.h"
#include "model/cuda/softmax.h"
#include "model/cuda/table.h"

enum { INVALID_VALUE = 1, PLAIN = 128 /* threads of the kernels without products */ };

/* The kernels for heads of up to `dim` numbers. */
typedef struct {
    int dim;
    /* grad_kv[1]: a separate kernel for dK, where a thread cannot hold the sums of both. */
    CudaKernel forward, grad_q, grad_kv[2];
    int split;
} Variant;

static const Variant variants[] = {
    {32, KERNEL_attention_32, KERNEL_attention_grad_q_32, {KERNEL_attention_grad_kv_32}, 0},
    {64, KERNEL_attention_64, KERNEL_attention_grad_q_64, {KERNEL_attention_grad_kv_64}, 0},
    {128, KERNEL_attention_128, KERNEL_attention_grad_q_128, {KERNEL_attention_grad_kv_128}, 0},
    {256,
     KERNEL_attention_256,
     KERNEL_attention_grad_q_256,
     {KERNEL_attention_grad_v_256, KERNEL_attention_grad_k_256},
     1},
};

static const Variant *variant_of(HeadShape s)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (s.dim <= variants[i].dim && s.dim % 8 == 0) return &variants[i];
    cuda_fail(INVALID_VALUE,
              "attention (the dimension of a head must be a multiple of 8, at most 256)");
    return NULL;
}

/* The numbering of blocks of `size` rows (place_of in attention.cuh): in rounds over the sequences,
 * unless most blocks would be empty because one sequence is much longer than the others. */
typedef struct {
    int rounds; /* 0: by sequence */
    unsigned tasks;
} Tasks;

static Tasks tasks_of(const BatchView *b, int size)
{
    long long rounds = (b->longest + size - 1) / size, packed = b->rows / size + b->n;
    if (rounds * b->n <= 2 * packed) return (Tasks){(int)rounds, (unsigned)(rounds * b->n)};
    return (Tasks){0, (unsigned)packed};
}

/* The tile sizes of the kernels, as Cut, Forward, GradQ and GradKV in the sources. sm_90 has its
 * own for the two usual dimensions. */
typedef struct {
    unsigned threads;
    int rows, keys;       /* forward: queries of a block; keys of a tile */
    int grad_q_keys;      /* keys of a tile for dQ */
    int kv_rows, queries; /* dK and dV: keys of a block, queries of a tile */
    int resident;         /* blocks per multiprocessor, about */
} Cut;

static Cut cut_of(const Variant *v)
{
    if (cuda_state()->arch == 90 && (v->dim == 64 || v->dim == 128))
        return (Cut){256, 128, v->dim, 128, 128, 64, 1};
    if (v->dim > 128) return (Cut){128, 64, 32, 16, 64, 16, 2};
    return (Cut){128, 128, 32, 32, 64, 32, 2};
}

static Dim3 line(unsigned n)
{
    return (Dim3){n, 1, 1};
}

/* Bytes of shared memory of tiles with `rows` rows in all. */
static size_t tiles(const Variant *v, int rows)
{
    return (size_t)rows * 2 * (size_t)v->dim;
}

void cuda_attention(Num *out, float *lse, const Num *qkv, const BatchView *b, HeadShape s)
{
    const Variant *v = variant_of(s);
    if (!v) return;
    Cut c = cut_of(v);
    Tasks t = tasks_of(b, c.rows);
    float scale = softmax_scale(s.dim);
    LAUNCH(v->forward, line(t.tasks * (unsigned)s.heads), line(c.threads),
           tiles(v, c.rows + 4 * c.keys), &out, &lse, &qkv, (void *)&b->start, (void *)&b->n,
           &t.rounds, &s.heads, &s.kv_heads, &s.dim, &scale);
}

/* A block of dK and dV reads the later queries of all heads of its group, so the block of a
 * sequence's first keys takes longest. The whole batch takes `alone` times as long as that block. A
 * GPU that runs more blocks at a time would wait for it; then the heads of each group are divided
 * into parts. */
static int parts_of(const BatchView *b, HeadShape s, Cut c)
{
    double blocks = (double)(b->longest + c.kv_rows - 1) / c.kv_rows, group = s.heads / s.kv_heads;
    double alone = (blocks + 1) / 2 * s.kv_heads * b->rows / b->longest,
           parts = ceil(c.resident * cuda_state()->sms / alone);
    return (int)(parts < group ? parts : group);
}

void cuda_attention_grad(Num *dqkv, const Num *dout, const Attended *attended, const BatchView *b,
                         HeadShape s)
{
    Attended a = *attended;
    const Variant *v = variant_of(s);
    if (!v || b->rows == 0) return;
    Cut c = cut_of(v);
    Tasks q = tasks_of(b, c.rows), kv = tasks_of(b, c.kv_rows);
    int rows = b->rows, parts = parts_of(b, s, c), lanes = 4;
    while (lanes * 8 < s.dim) lanes *= 2;
    size_t vectors = (size_t)rows * (size_t)s.heads,
           kv_row = 2 * (size_t)s.kv_heads * (size_t)s.dim;
    size_t partial = parts > 1 ? (size_t)parts * (size_t)rows * kv_row : 0;
    float *statistics = cuda_scratch((2 * vectors + partial) * sizeof *statistics),
          *sums = statistics + 2 * vectors;
    float scale = softmax_scale(s.dim);
    if (cuda_failed()) return;
    LAUNCH(KERNEL_attention_grad_rows, line(ceil_div(vectors * (size_t)lanes, PLAIN)), line(PLAIN),
           0, &statistics, &dout, &a.out, &a.lse, &rows, &s.heads, &s.dim, &lanes);
    LAUNCH(v->grad_q, line(q.tasks * (unsigned)s.heads), line(c.threads),
           tiles(v, 2 * c.rows + 4 * c.grad_q_keys), &dqkv, &a.qkv, &dout, &statistics,
           (void *)&b->start, (void *)&b->n, &q.rounds, &rows, &s.heads, &s.kv_heads, &s.dim,
           &scale);
    /* Two statistics of the queries of two tiles. */
    size_t numbers = 4 * (size_t)c.queries * sizeof(float);
    for (int i = 0; i <= v->split; i++)
        LAUNCH(v->grad_kv[i], line(kv.tasks * (unsigned)(s.kv_heads * parts)), line(c.threads),
               tiles(v, 2 * c.kv_rows + 4 * c.queries) + numbers, &dqkv, &sums, &a.qkv, &dout,
               &statistics, (void *)&b->start, (void *)&b->n, &kv.rounds, &rows, &s.heads,
               &s.kv_heads, &s.dim, &parts, &scale);
    if (parts > 1)
        LAUNCH(KERNEL_attention_grad_sum, line(ceil_div((size_t)rows * kv_row / 2, PLAIN)),
               line(PLAIN), 0, &dqkv, &sums, &rows, &s.heads, &s.kv_heads, &s.dim, &parts);
}
