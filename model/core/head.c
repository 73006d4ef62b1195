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
    Gemm g = {.a = matrix(normed_at(m, a, first), rows, c->hidden),
              .b = transposed(matrix(weight_at(m, m->head), c->vocab, c->hidden)),
              .alpha = 1,
              .d = a->logits,
              .ldd = c->vocab,
              .wide = 1,
              .ordered = 1};
    m->ops->gemm(&g);
}

static void logp_of(const Model *m, Acts *a, const TokenBatch *b, int first, int rows)
{
    const Logits l = {a->logits, b->view.target + first, rows, m->c.vocab};
    m->ops->cross_entropy(a->logp + first, a->logit_lse + first, &l);
}

void head_logp(Model *m, Acts *a, const TokenBatch *b)
{
    for (int at = 0; at < b->rows; at += a->logit_rows) {
        int rows = b->rows - at < a->logit_rows ? b->rows - at : a->logit_rows;
        logits_of(m, a, at, rows);
        logp_of(m, a, b, at, rows);
    }
}

/* Rows [first, first + rows): dn = dlogits W, dW += dlogits^T normed. dlogits overwrite the
 * logits. */
static void piece_backward(const BackwardPass *p, float *logits, int first, int rows)
{
    const Model *m = p->m;
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    float *dw = base_grad(p, m->head);
    const Logits l = {logits, p->b->view.target + first, rows, c->vocab};
    op->cross_entropy_grad(logits, p->a->logit_lse + first, p->g->weight + first, &l);
    Matrix dlogits = {logits, rows, c->vocab, c->vocab * (int)sizeof(float) / op->num, 0};
    Gemm back = {.a = dlogits,
                 .b = matrix(weight_at(m, m->head), c->vocab, c->hidden),
                 .alpha = 1,
                 .d = num_at(op, p->g->dn, (size_t)first * (size_t)c->hidden),
                 .ldd = c->hidden};
    op->gemm(&back);
    Gemm weights = {.a = transposed(dlogits),
                    .b = matrix(normed_at(m, p->a, first), rows, c->hidden),
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
void head_backward(const BackwardPass *p, const float *weight, int fused)
{
    enum { GAP = 32 };
    const Model *m = p->m;
    Acts *a = p->a;
    int n = p->b->rows, kept = a->logit_rows >= n && !fused, max_rows = kept ? n : a->logit_rows;
    m->ops->upload(p->g->weight, weight, (size_t)n * sizeof *weight);
    m->ops->zero(p->g->dn, (size_t)n * (size_t)m->c.hidden * (size_t)m->ops->num);
    for (int at = 0; at < n;) {
        if (weight[at] == 0) {
            at++;
            continue;
        }
        int last = at;
        for (int t = at; t < n && t - last <= GAP && t - at < max_rows; t++)
            if (weight[t] != 0) last = t;
        int rows = last + 1 - at;
        if (!kept) logits_of(m, a, at, rows);
        if (fused) logp_of(m, a, p->b, at, rows);
        piece_backward(p, a->logits + (kept ? (size_t)at * (size_t)m->c.vocab : 0), at, rows);
        at = last + 1;
    }
}
