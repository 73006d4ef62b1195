/* The decoder on a GPU. Rows are independent of each other bit for bit (the kernels of
 * step_kernels.h), so that a sample depends neither on the number of rows nor on which of them
 * wait. A step is one graph per bucket of rows: the host writes ids, positions, pages and random
 * numbers to pinned memory, launches, and reads ids and log-probabilities from there. */
#include "model/cuda/decode/decoder_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/cuda/decode/pagepool.h"
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/decode/stepgraph.h"
#include "model/cuda/table.h"

typedef struct {
    int len; /* tokens with keys and values */
    PageList pages;
} Slot;

typedef struct {
    Decoder base;
    StepGraphs step; /* the part on the device */
    PagePool pool;
    int ld;     /* pages of a row, at most */
    Slot *slot; /* [rows]; their pages are in `room` */
    int32_t *room;
    Slot prompt; /* the last prompt, held until all its copies are attached */
    int32_t *prompt_room;
    int copies;
} CudaDecoder;

static int pages_of(int tokens)
{
    return (tokens + KV_PAGE - 1) / KV_PAGE;
}

/* Returns the pages of a row. The last drawn token is never appended. */
static int pages_needed(const DecoderPlan *plan, int prompt_len)
{
    return pages_of(prompt_len + plan->max_new - 1);
}

/* Returns the pages of a row of the table, at most. */
static int table_width(const DecoderPlan *plan)
{
    return pages_of(plan->prompt + plan->max_new);
}

static int device_status(const CudaDecoder *d, Error *err)
{
    return d->base.model->ops->status(err);
}

/* ---- prompts and rows ---- */

typedef struct {
    const Pages *pages;
    const int32_t *table;
    int heads;
} StorePrompt;

static void store_layer(void *ctx, int layer, const Num *qkv, int rows)
{
    const StorePrompt *s = ctx;
    cuda_store_prompt(s->pages, qkv, s->table, rows, s->heads, layer);
}

/* Succeeds only if a row that continues the prompt has room too. */
static int prefill(Decoder *base, const int32_t *ids, int len, int copies, Error *err)
{
    CudaDecoder *d = (CudaDecoder *)base;
    int pages = pages_of(len), row = pages_needed(&base->plan, len) - len / KV_PAGE;
    pagelist_end(&d->prompt.pages, &d->pool);
    if (pages + row > d->pool.pages)
        return error_set(err, ERROR_MEMORY,
                         "a prompt of %d tokens and %d new ones need %d pages of keys and values "
                         "(%d tokens each), and there is room for "
                         "%d: a smaller --batch, or a smaller --max-new, make it fit",
                         len, base->plan.max_new, pages + row, KV_PAGE, d->pool.pages);
    if (pagepool_left(&d->pool) < pages + row ||
        !pagelist_begin(&d->prompt.pages, &d->pool, d->prompt_room, NULL, 0, pages))
        return 0;
    for (int i = 0; i < pages; i++) pagelist_add(&d->prompt.pages, &d->pool);
    d->prompt.len = len;
    d->copies = copies;
    cuda_upload(d->step.prompt_table, d->prompt_room, (size_t)pages * sizeof *d->prompt_room);
    StorePrompt store = {&d->step.pages, d->step.prompt_table, base->model->c.heads};
    stepgraph_prompt(&d->step, decoder_forward(base, ids, len, store_layer, &store));
    return device_status(d, err) ? -1 : 1;
}

/* Whole pages are shared, and the tokens of the prompt in a partial last page are copied. */
static int attach(Decoder *base, int slot, Error *err)
{
    CudaDecoder *d = (CudaDecoder *)base;
    Slot *s = &d->slot[slot];
    int len = d->prompt.len, whole = len / KV_PAGE;
    int32_t *room = d->room + (size_t)slot * (size_t)d->ld;
    (void)err;
    if (!pagelist_begin(&s->pages, &d->pool, room, d->prompt_room, whole,
                        pages_needed(&base->plan, len)))
        return 0;
    s->len = len;
    if (len % KV_PAGE) {
        size_t nums = page_nums(&d->step.pages);
        char *data = d->step.pages.data;
        int32_t to = pagelist_add(&s->pages, &d->pool);
        cuda_copy(data + (size_t)to * nums * 2, data + (size_t)d->prompt_room[whole] * nums * 2,
                  nums * 2);
    }
    if (!--d->copies) pagelist_end(&d->prompt.pages, &d->pool);
    return 1;
}

static void detach(Decoder *base, int slot)
{
    CudaDecoder *d = (CudaDecoder *)base;
    pagelist_end(&d->slot[slot].pages, &d->pool);
}

/* ---- steps ---- */

static int drawn(const CudaDecoder *d, DecoderRow *rows, int n, Error *err)
{
    if (device_status(d, err)) return -1;
    for (int i = 0; i < n; i++) {
        rows[i].id = d->step.drawn_ids[i];
        rows[i].logp = d->step.drawn_logp[i];
    }
    return 0;
}

static int first(Decoder *base, DecoderRow *rows, int n, Error *err)
{
    CudaDecoder *d = (CudaDecoder *)base;
    StepInput in = stepgraph_input(&d->step);
    for (int i = 0; i < n; i++) in.u[i] = rows[i].u;
    stepgraph_first(&d->step, n);
    return drawn(d, rows, n, err);
}

static int step(Decoder *base, DecoderRow *rows, int n, Error *err)
{
    CudaDecoder *d = (CudaDecoder *)base;
    StepInput in = stepgraph_input(&d->step);
    for (int i = 0; i < n; i++) {
        Slot *s = &d->slot[rows[i].slot];
        if (s->len / KV_PAGE == s->pages.n) pagelist_add(&s->pages, &d->pool);
        in.u[i] = rows[i].u;
        in.ids[i] = rows[i].id;
        in.pos[i] = s->len++;
        memcpy(in.table + (size_t)i * (size_t)d->ld, s->pages.page,
               (size_t)s->pages.n * sizeof *in.table);
    }
    stepgraph_run(&d->step, n);
    return drawn(d, rows, n, err);
}

static void cuda_free(Decoder *base)
{
    CudaDecoder *d = (CudaDecoder *)base;
    stepgraph_release(&d->step);
    decoder_release(base);
    pagepool_release(&d->pool);
    free(d->slot);
    free(d->room);
    free(d->prompt_room);
    free(d);
}

static const DecoderType cuda_type = {cuda_free, prefill, attach, detach, first, step};

/* ---- memory: reserved once for the longest prompt, then pages ---- */

static void reserve(CudaDecoder *d)
{
    Model *m = d->base.model;
    const DecoderPlan *plan = &d->base.plan;
    model_reserve_positions(m, plan->prompt + plan->max_new);
    acts_reserve(&d->base.acts, m, plan->prompt, KEEP_ONE);
    batch_reserve(&d->base.tokens, m->ops, plan->prompt);
}

static size_t reserved_bytes(const Model *m, const DecoderPlan *plan)
{
    return model_position_bytes(m, plan->prompt + plan->max_new) +
           acts_bytes(m, plan->prompt, KEEP_ONE) + batch_bytes(plan->prompt);
}

/* Reserve the pages that rows may come to need, within the limits of memory and of the caller, and
 * leave memory for the workspaces of the products. left: bytes that are free after everything else.
 * Returns the pages. */
static int plan_pages(const Model *m, const DecoderPlan *plan, size_t left, DecoderMemory *out)
{
    size_t spare = (size_t)512 << 20,
           want = ((size_t)plan->rows + 1) * ((size_t)table_width(plan) + 1);
    out->spare = left / 16 > spare ? left / 16 : left / 2 < spare ? left / 2 : spare;
    out->room = left - out->spare;
    out->token = decoder_token_bytes(m);
    if (plan->cache_tokens && (size_t)plan->cache_tokens / KV_PAGE < want)
        want = (size_t)plan->cache_tokens / KV_PAGE;
    if (want > INT32_MAX) want = INT32_MAX;
    size_t pages = out->room / (out->token * KV_PAGE);
    if (pages > want) pages = want;
    out->tokens = (int64_t)pages * KV_PAGE;
    out->held = (size_t)out->tokens * out->token;
    return (int)pages;
}

/* A prompt with a partial last page holds it in addition to its last row's copy: one page more than
 * the rows have. */
void decoder_memory_cuda(const Model *m, const DecoderPlan *plan, size_t available,
                         DecoderMemory *out)
{
    *out = (DecoderMemory){.own = reserved_bytes(m, plan) +
                                  stepgraph_bytes(m, plan, table_width(plan))};
    size_t left = available > out->own ? available - out->own : 0;
    int64_t pages = plan_pages(m, plan, left, out);
    out->all_fit = (int64_t)plan->rows * pages_needed(plan, plan->prompt) + 1 <= pages;
}

/* ---- creation ---- */

int decoder_check_cuda(const Model *m, Error *err)
{
    const ModelConfig *c = &m->c;
    if (c->hidden % 8 || c->ff % 8 || c->head_dim % 8 || c->head_dim > 256)
        return error_set(err, ERROR_UNSUPPORTED,
                         "sampling on a GPU needs hidden_size, intermediate_size and head_dim to "
                         "be multiples of 8, and head_dim at "
                         "most 256; found %d, %d and %d",
                         c->hidden, c->ff, c->head_dim);
    if (c->heads / c->kv_heads > 16)
        return error_set(err, ERROR_UNSUPPORTED,
                         "sampling on a GPU has at most 16 query heads for a key head, found %d",
                         c->heads / c->kv_heads);
    return 0;
}

int decoder_create_cuda(Model *m, const DecoderPlan *plan, Decoder **out, Error *err)
{
    CudaDecoder *d = memory_array(1, sizeof *d);
    d->base = (Decoder){.type = &cuda_type, .model = m, .plan = *plan};
    d->ld = table_width(plan);
    d->slot = memory_array((size_t)plan->rows, sizeof *d->slot);
    d->room = memory_array((size_t)plan->rows * (size_t)d->ld, sizeof *d->room);
    d->prompt_room = memory_array((size_t)d->ld, sizeof *d->prompt_room);
    reserve(d);
    size_t left, total;
    DecoderMemory memory;
    int rc = stepgraph_init(&d->step, m, plan, d->ld, err);
    if (!rc) rc = m->ops->memory(&left, &total, err);
    if (!rc) {
        pagepool_init(&d->pool, plan_pages(m, plan, left, &memory));
        d->step.pages.data = m->ops->alloc(memory.held);
        rc = device_status(d, err);
    }
    if (rc)
        cuda_free(&d->base);
    else
        *out = &d->base;
    return rc;
}
