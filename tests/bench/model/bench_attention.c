/* Timing of attention, forward and backward, over random inputs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/bench/model/bench_attention.h"

typedef struct {
    HeadShape s;
    int sequences, length;
} BenchShape;

typedef struct {
    BatchView view;
    Num *qkv, *out, *dout, *dqkv;
    float *lse;
    int32_t *start;
} Buffers;

static void fill(const Ops *op, Num *to, size_t n, uint64_t seed)
{
    Random r;
    float *host = memory_array(n, sizeof *host);
    random_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) host[i] = (float)random_below(&r, 1 << 16) / (1 << 15) - 1;
    op->load(to, host, n);
    free(host);
}

static void buffers_init(Buffers *b, const Ops *op, const BenchShape *at)
{
    size_t rows = (size_t)at->sequences * (size_t)at->length, num = (size_t)op->num;
    size_t qkv = rows * (size_t)head_row(at->s),
           out = rows * (size_t)at->s.heads * (size_t)at->s.dim;
    int32_t *start = memory_array((size_t)at->sequences + 1, sizeof *start);
    for (int i = 0; i <= at->sequences; i++) start[i] = i * at->length;
    *b = (Buffers){.qkv = op->alloc(qkv * num),
                   .out = op->alloc(out * num),
                   .dout = op->alloc(out * num),
                   .dqkv = op->alloc(qkv * num),
                   .lse = op->alloc(rows * (size_t)at->s.heads * sizeof(float)),
                   .start = op->alloc(((size_t)at->sequences + 1) * sizeof *start)};
    b->view = (BatchView){
        .rows = (int)rows, .n = at->sequences, .longest = at->length, .start = b->start};
    op->upload(b->start, start, ((size_t)at->sequences + 1) * sizeof *start);
    fill(op, b->qkv, qkv, 1);
    fill(op, b->dout, out, 2);
    free(start);
}

static void buffers_release(Buffers *b, const Ops *op)
{
    op->release(b->qkv);
    op->release(b->out);
    op->release(b->dout);
    op->release(b->dqkv);
    op->release(b->lse);
    op->release(b->start);
}

static void pass(const Ops *op, const Buffers *b, HeadShape s, int backward)
{
    if (backward)
        op->attention_grad(b->dqkv, b->dout, &(Attended){b->qkv, b->out, b->lse}, &b->view, s);
    else
        op->attention(b->out, b->lse, b->qkv, &b->view, s);
}

static int time_passes(const Ops *op, const Buffers *b, HeadShape s, int backward, int times,
                       double *seconds, Error *err)
{
    double begin = clock_seconds();
    for (int i = 0; i < times; i++) pass(op, b, s, backward);
    int r = op->status(err);
    *seconds = (clock_seconds() - begin) / times;
    return r;
}

/* Time one pass: the mean of as many as take about half a second, after two untimed ones. */
static int time_pass(const Ops *op, const Buffers *b, HeadShape s, int backward, double *seconds,
                     Error *err)
{
    if (time_passes(op, b, s, backward, 1, seconds, err) ||
        time_passes(op, b, s, backward, 1, seconds, err))
        return -1;
    return time_passes(op, b, s, backward, *seconds > 0.0005 ? (int)(0.5 / *seconds) + 1 : 1000,
                       seconds, err);
}

int bench_attention(const Ops *op, Error *err)
{
    static const BenchShape shapes[] = {
        {{28, 4, 128}, 4, 2048}, {{14, 2, 64}, 16, 1024}, {{32, 8, 128}, 1, 8192}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const BenchShape *at = &shapes[i];
        Buffers b;
        double forward = 0, backward = 0,
               flops =
                   2.0 * at->sequences * at->length * (double)at->length * at->s.heads * at->s.dim;
        buffers_init(&b, op, at);
        int r = time_pass(op, &b, at->s, 0, &forward, err) ||
                time_pass(op, &b, at->s, 1, &backward, err);
        buffers_release(&b, op);
        if (r) return -1;
        printf("attention %d/%d heads of %d, %d x %d: forward %.3f ms, %.1f TFLOP/s; backward %.3f "
               "ms, %.1f TFLOP/s\n",
               at->s.heads, at->s.kv_heads, at->s.dim, at->sequences, at->length, 1e3 * forward,
               flops / forward / 1e12, 1e3 * backward, 2.5 * flops / backward / 1e12);
    }
    return 0;
}
