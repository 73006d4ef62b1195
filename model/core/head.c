/* From the last hidden states to log-probabilities and back. The logits of a batch are the largest
 * array of a pass. They are computed in pieces where they do not fit. For losses whose weights do
 * not depend on them they are read once. */
#include "model/core/transformer.h"

/* The CPU keeps logits of up to 64 MiB, a GPU of up to a sixteenth of its memory, and none for one
 * pass. A piece is large enough for the products to run at full speed. The gradient of the head's
 * weights is as large as the weights and is read and written once per piece, so pieces are larger
 * where there is one. The sizes fix the order of the sums; they depend on the shape and the machine
 * only. */
enum { KEPT_ON_CPU = 64 << 20, ROWS_ON_CPU = 256, ROWS_ON_GPU = 1024, ROWS_WITH_GRADIENT = 4096 };

int head_rows(const Model *m, int rows, HeadUse use)
{
    size_t kept = KEPT_ON_CPU, free_bytes, total;
    int piece = ROWS_ON_CPU;
    if (!m->ops->is_cpu) {
        kept = use != HEAD_TWICE || m->ops->memory(&free_bytes, &total, NULL) ? 0 : total / 16;
        piece = use == HEAD_FORWARD || m->lora.size ? ROWS_ON_GPU : ROWS_WITH_GRADIENT;
    }
    return rows < piece || (size_t)rows * (size_t)m->c.vocab * sizeof(float) <= kept ? rows : piece;
}

size_t head_bytes(const Model *m, int rows)
{
    return (size_t)rows * (size_t)m->c.vocab * sizeof(float);
}

void head_reserve(Acts *a, const Model *m, int rows)
{
    a->logit_rows = rows;
    if (rows <= a->logit_cap) return;
    m->ops->release(a->logits);
    a->logits = m->ops->alloc(head_bytes(m, rows));
    a->logit_cap = rows;
}

static Num *normed_at(const Model *m, const Acts *a, int row)
{
    return num_at(m->ops, a->normed, (size_t)row * (size_t)m->c.hidden);
}

static void logits_of(const Model *m, const Acts *a, int first, int rows)
{
    const ModelConfig *c = &m->c;
    Gemm g = {.tb = 1,
              .m = rows,
              .n = c->vocab,
              .k = c->hidden,
              .a = normed_at(m, a, first),
              .lda = c->hidden,
              .b = weight_at(m, m->head),
              .ldb = c->hidden,
              .alpha = 1,
              .d = a->logits,
              .ldd = c->vocab,
              .wide = 1,
              .ordered = 1};
    m->ops->gemm(&g);
}

void head_logp(Model *m, Acts *a, const TokenBatch *b)
{
    for (int at = 0; at < b->rows; at += a->logit_rows) {
        int rows = b->rows - at < a->logit_rows ? b->rows - at : a->logit_rows;
        logits_of(m, a, at, rows);
        m->ops->cross_entropy(a->logp + at, a->logit_lse + at, a->logits, b->view.target + at, rows,
                              m->c.vocab);
    }
}

/* Rows [first, first + rows): dn = dlogits W, dW += dlogits^T normed. dlogits overwrite the
 * logits. */
static void piece_backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, float *logits,
                           int first, int rows, float *grad)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    int ld = c->vocab * (int)sizeof(float) / op->num;
    float *dw = base_grad(m, grad, m->head);
    op->cross_entropy_grad(logits, logits, a->logit_lse + first, b->view.target + first,
                           g->weight + first, rows, c->vocab);
    Gemm back = {.m = rows,
                 .n = c->hidden,
                 .k = c->vocab,
                 .a = logits,
                 .lda = ld,
                 .b = weight_at(m, m->head),
                 .ldb = c->hidden,
                 .alpha = 1,
                 .d = num_at(op, g->dn, (size_t)first * (size_t)c->hidden),
                 .ldd = c->hidden};
    op->gemm(&back);
    Gemm weights = {.ta = 1,
                    .m = c->vocab,
                    .n = c->hidden,
                    .k = rows,
                    .a = logits,
                    .lda = ld,
                    .b = normed_at(m, a, first),
                    .ldb = c->hidden,
                    .alpha = 1,
                    .beta = 1,
                    .c = dw,
                    .d = dw,
                    .ldd = c->hidden,
                    .wide = 1};
    if (dw) op->gemm(&weights);
}

/* Only rows with weights are computed: prompts in SFT and RL have none. A gap of fewer than GAP
 * rows does not end a piece. */
void head_backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, int fused,
                   float *grad)
{
    enum { GAP = 32 };
    int kept = a->logit_rows >= b->rows && !fused, max_rows = kept ? b->rows : a->logit_rows;
    m->ops->upload(g->weight, weight, (size_t)b->rows * sizeof *weight);
    m->ops->zero(g->dn, (size_t)b->rows * (size_t)m->c.hidden * (size_t)m->ops->num);
    for (int at = 0; at < b->rows;) {
        if (weight[at] == 0) {
            at++;
            continue;
        }
        int last = at;
        for (int t = at; t < b->rows && t - last <= GAP && t - at < max_rows; t++)
            if (weight[t] != 0) last = t;
        int rows = last + 1 - at;
        if (!kept) logits_of(m, a, at, rows);
        if (fused)
            m->ops->cross_entropy(a->logp + at, a->logit_lse + at, a->logits, b->view.target + at,
                                  rows, m->c.vocab);
        piece_backward(m, a, g, b, a->logits + (kept ? (size_t)at * (size_t)m->c.vocab : 0), at,
                       rows, grad);
        at = last + 1;
    }
}
