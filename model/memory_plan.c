/* Count the bytes of every part by the functions that later allocate them, so that the plan is
 * exact except for workspaces. */
#include "model/memory_plan.h"

#include "model/core/ranks.h"
#include "model/core/transformer.h"
#include "model/decoder_create.h"

static const char *const part_name[PLAN_PARTS] = {"weights",   "adapter",     "gradients",
                                                  "optimiser", "activations", "backward",
                                                  "logits",    "batch",       "workspace"};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Memory that the operations of a GPU allocate: cuBLASLt's workspace, the kernels, and, for the
 * backward pass of attention, sums of dk and dv for each query head. */
static size_t workspace(const Model *m, int rows)
{
    enum { FIXED = 256 << 20 };
    if (m->ops->is_cpu) return 0;
    return FIXED +
           (size_t)rows * (size_t)m->c.heads * (size_t)(2 * m->c.head_dim + 2) * sizeof(float);
}

/* Fill in the plan of p->max_tokens and p->recompute with p->available free bytes. */
static void fill_plan(const Model *m, const TrainerOptions *o, MemoryPlan *p)
{
    int tokens = p->max_tokens, recompute = p->recompute;
    const ParamSet *set = m->lora.size ? &m->lora : &m->base;
    size_t num = (size_t)m->ops->num, moment = o->lean ? num : sizeof(float);
    size_t master = num != sizeof(float) && !o->lean ? sizeof(float) : 0;
    p->lora = m->lora.size > 0;
    p->lean = o->lean;
    p->logit_rows = head_rows(m, tokens, o->fixed_weights ? HEAD_ONCE : HEAD_TWICE);
    p->bytes[PLAN_WEIGHTS] = m->base.size * num;
    p->bytes[PLAN_ADAPTER] = m->lora.size * num;
    p->bytes[PLAN_GRADIENTS] = set->size * sizeof(float);
    p->bytes[PLAN_OPTIMIZER] = set->size / (size_t)ranks_size() * (2 * moment + master);
    p->bytes[PLAN_ACTIVATIONS] = acts_bytes(m, tokens, recompute ? KEEP_INPUTS : KEEP_ALL);
    p->bytes[PLAN_BACKWARD] = grads_bytes(m, tokens);
    p->bytes[PLAN_LOGITS] = head_bytes(m, p->logit_rows);
    p->bytes[PLAN_BATCH] =
        batch_bytes(tokens) + model_position_bytes(m, min_int(tokens, m->c.max_position));
    p->bytes[PLAN_WORKSPACE] = workspace(m, tokens);
    for (int i = 0; i < PLAN_PARTS; i++) p->total += p->bytes[i];
    if (m->base.data) p->available += p->bytes[PLAN_WEIGHTS];
    if (m->lora.data) p->available += p->bytes[PLAN_ADAPTER];
    p->fits = p->total <= p->available;
}

/* Plan as requested. With RECOMPUTE_AUTO recompute only if it does not fit otherwise. Returns
 * whether it fits. */
static int fits_with(const Model *m, const TrainerOptions *o, int tokens, size_t available,
                     MemoryPlan *p)
{
    MemoryPlan plan = {.max_tokens = tokens, .available = available};
    for (int again = o->recompute == RECOMPUTE_YES; again < 2; again++) {
        *p = plan;
        p->recompute = again;
        fill_plan(m, o, p);
        if (p->fits || o->recompute != RECOMPUTE_AUTO) break;
    }
    return p->fits;
}

/* 4096 tokens keep a GPU busy, and more are a little faster. Take up to 16384 tokens without
 * recomputation if they fit, and recompute only if 4096 do not fit. */
static void choose_tokens(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *p)
{
    enum { MAX = 16384, ENOUGH = 4096, LEAST = 512 };
    TrainerOptions plain = *o;
    if (plain.recompute == RECOMPUTE_AUTO) plain.recompute = RECOMPUTE_NO;
    for (int tokens = MAX; tokens >= ENOUGH; tokens /= 2)
        if (fits_with(m, &plain, tokens, available, p)) return;
    for (int tokens = MAX; tokens >= LEAST; tokens /= 2)
        if (fits_with(m, o, tokens, available, p)) return;
}

int plan_trainer(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *out,
                 Error *err)
{
    if (o->max_tokens < 0 || o->max_tokens > 1 << 24)
        return error_set(err, ERROR_INVALID,
                         "max_tokens of a micro-batch is expected to be 0 to %d, found %d", 1 << 24,
                         o->max_tokens);
    if (o->lean && m->ops->is_cpu)
        return error_set(err, ERROR_INVALID,
                         "lean training rounds 16-bit weights stochastically: the CPU "
                         "computes with 32 bits and has none");
    if (o->max_tokens)
        fits_with(m, o, o->max_tokens, available, out);
    else
        choose_tokens(m, o, available, out);
    return 0;
}

/* Create the model without memory for its parameters, and query the free memory. */
static int lay_out(const PlannedModel *p, size_t *available, Model **out, Error *err)
{
    size_t total;
    if (model_config_check(p->c, "the planned model", err) ||
        p->ops->memory(available, &total, err))
        return -1;
    *out = model_layout(p->c, p->ops);
    if (!p->lora || !lora_layout(*out, p->lora, err)) return 0;
    model_free(*out);
    return -1;
}

int plan_training(const PlannedModel *p, const TrainerOptions *o, MemoryPlan *out, Error *err)
{
    size_t available;
    Model *m;
    if (lay_out(p, &available, &m, err)) return -1;
    int rc = plan_trainer(m, o, available, out, err);
    model_free(m);
    return rc;
}

int plan_sampling(const PlannedModel *p, int rows, int max_new, SamplingPlan *out, Error *err)
{
    const ModelConfig *c = p->c;
    size_t available;
    Model *m;
    if (lay_out(p, &available, &m, err)) return -1;
    if (decoder_check(m, err)) {
        model_free(m);
        return -1;
    }
    DecoderPlan plan = {.rows = rows, .max_new = max_new, .law = {.vocab = c->vocab}};
    DecoderMemory memory;
    size_t weights = (m->base.size + m->lora.size) * (size_t)p->ops->num,
           left = available > weights ? available - weights : 0;
    int fit = 0;
    for (int step = 1 << 24; step; step /= 2) { /* binary search: longer prompts leave less room */
        plan.prompt = fit + step;
        if (plan.prompt > c->max_position - max_new) continue;
        decoder_memory(m, &plan, left, &memory);
        if (memory.all_fit) fit = plan.prompt;
    }
    plan.prompt = fit ? fit : 1;
    decoder_memory(m, &plan, left, &memory);
    *out = (SamplingPlan){weights,     available,   memory.own,   memory.spare,
                          memory.room, memory.held, memory.token, memory.tokens,
                          rows,        plan.prompt, max_new,      fit > 0};
    model_free(m);
    return 0;
}

static double gib(size_t bytes)
{
    return (double)bytes / (1 << 30);
}

void plan_print(const MemoryPlan *p, Buffer *out)
{
    for (int i = 0; i < PLAN_PARTS; i++)
        if (p->bytes[i]) buffer_printf(out, "%-12s %9.3f GiB\n", part_name[i], gib(p->bytes[i]));
    buffer_printf(out, "%-12s %9.3f GiB of %.3f\n", "total", gib(p->total), gib(p->available));
    buffer_printf(out, "micro-batches of %d tokens, %s, %s of logits at a time: %s\n",
                  p->max_tokens, p->recompute ? "activations made again" : "all activations kept",
                  p->logit_rows < p->max_tokens ? "a piece" : "all",
                  p->fits ? "fits" : "does not fit");
}

int plan_refuse(const MemoryPlan *p, Error *err)
{
    const char *other = !p->recompute ? "--recompute"
                        : !p->lora    ? "--lora"
                        : !p->lean    ? "--lean"
                                      : "a smaller model";
    return error_set(err, ERROR_MEMORY,
                     "training takes %.2f GiB, %.2f GiB are free: change --max-tokens (%d) or %s",
                     gib(p->total), gib(p->available), p->max_tokens, other);
}

/* On the CPU `held` is all of the room. */
void plan_print_sampling(const SamplingPlan *p, int max_position, Buffer *out)
{
    int64_t a_row = p->fits ? p->prompt + p->max_new : p->tokens / p->rows;
    buffer_printf(out, "%-16s %9.2f GiB\n", "weights", gib(p->weights));
    if (p->decoder) {
        buffer_printf(out, "%-16s %9.2f GiB, prompts of up to %d token%s\n", "decoder",
                      gib(p->decoder), p->prompt, p->prompt > 1 ? "s" : "");
        buffer_printf(out, "%-16s %9.2f GiB left free\n", "workspaces", gib(p->spare));
    }
    buffer_printf(out, "%-16s %9.2f GiB ", "keys and values", gib(p->held));
    if (p->held < p->room) buffer_printf(out, "of %.2f ", gib(p->room));
    buffer_printf(out, "free, %.1f KiB a token: %lld tokens\n", (double)p->token / 1024,
                  (long long)p->tokens);
    buffer_printf(out, "%d rows at once: %lld tokens each, of which %d are new: %s\n", p->rows,
                  (long long)(a_row < max_position ? a_row : max_position), p->max_new,
                  p->fits                     ? "fits"
                  : p->weights > p->available ? "the weights do not fit"
                                              : "rows wait for others to end");
}
