/* quern-modelbench: the speed of training, sampling, and the matrix products of both. */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "model/core/lora.h"
#include "model/core/ranks.h"
#include "model/cpu/ops_cpu.h"
#include "model/memory_plan.h"
#include "model/model_device.h"
#include "tests/bench/model/bench.h"

typedef struct {
    const char *engine, *shape, *recompute, *only;
    int64_t hidden, layers, ff, heads, kv_heads, vocab, length, sequences, steps, max_tokens, lora,
        ranks;
    int64_t batch, prompt, new_tokens, copies;
    double peak;
    int lean, needs_logp, profile;
} Options;

/* Fill c with the named shape and the sizes that the flags give. */
static int model_shape(const Options *o, ModelConfig *c, Error *err)
{
    if (bench_shape(o->shape, c, err)) return -1;
    const struct {
        int64_t given;
        int *field;
    } sizes[] = {{o->hidden, &c->hidden}, {o->layers, &c->layers},     {o->ff, &c->ff},
                 {o->heads, &c->heads},   {o->kv_heads, &c->kv_heads}, {o->vocab, &c->vocab}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].given) *sizes[i].field = (int)sizes[i].given;
    return 0;
}

static int open_device(const Options *o, const Ops **ops, Error *err)
{
    char name[16];
    return ranks_start((int)o->ranks, err) || ranks_device(o->engine, name, err) ||
           model_device(name, ops, err) || ranks_join(*ops, err);
}

static int run(const Options *o, Error *err)
{
    const Ops *ops;
    ModelConfig c;
    Model *m;
    if (open_device(o, &ops, err) || model_shape(o, &c, err) || bench_model(&c, ops, &m, err))
        return -1;
    LoraOptions lora = {
        .rank = (int)o->lora, .alpha = 2 * (double)o->lora, .targets = LORA_ALL, .seed = 1};
    int rc = o->lora ? model_add_lora(m, &lora, err) : 0;
    double peak = o->peak > 0 ? o->peak * 1e12 : bench_peak(ops, ops == ops_cpu() ? 2048 : 8192);
    if (!rc) {
        printf("model: %s, %zu parameters, on %s, %lld at a time\n", o->shape, model_parameters(m),
               ops->name, (long long)o->ranks);
        printf("shares are of %.3g TFLOP/s each%s\n", peak / 1e12,
               o->peak > 0 ? "" : ", the best square product in this run");
    }
    Recompute r = !strcmp(o->recompute, "on")    ? RECOMPUTE_YES
                  : !strcmp(o->recompute, "off") ? RECOMPUTE_NO
                                                 : RECOMPUTE_AUTO;
    BenchTraining t = {.sequences = (int)o->sequences,
                       .length = (int)o->length,
                       .steps = (int)o->steps,
                       .peak = peak * (double)o->ranks,
                       .profile = o->profile,
                       .trainer = {.max_tokens = (int)o->max_tokens,
                                   .recompute = r,
                                   .lean = o->lean,
                                   .fixed_weights = !o->needs_logp}};
    BenchSampling s = {.batch = (int)o->batch,
                       .prompt = (int)o->prompt,
                       .new_tokens = (int)o->new_tokens,
                       .copies = (int)o->copies,
                       .peak = peak};
    if (!rc && strcmp(o->only, "sampling")) rc = bench_training(m, &t, err);
    if (!rc && strcmp(o->only, "training") && o->ranks == 1) rc = bench_sampling(m, &s, err);
    model_free(m);
    return rc ? rc : ranks_finish(err);
}

int main(int argc, char **argv)
{
    log_open("quern-modelbench");
    Options o = {.engine = "cpu",
                 .shape = "tiny",
                 .recompute = "auto",
                 .only = "both",
                 .length = 400,
                 .sequences = 10,
                 .steps = 8,
                 .max_tokens = 4096,
                 .batch = 64,
                 .prompt = 400,
                 .new_tokens = 300,
                 .copies = 8,
                 .ranks = 1};
    Flag flags[] = {
        {"engine", FLAG_TEXT, &o.engine, "cpu, cuda:N or auto"},
        {"ranks", FLAG_INT, &o.ranks,
         "processes that train together, each on a GPU of its own from N on", 1, RANKS_MAX},
        {"shape", FLAG_TEXT, &o.shape, "of which model", .choices = bench_shape_names()},
        {"hidden", FLAG_INT, &o.hidden, "width in its place; 0: the shape's, as the next", 0,
         65536},
        {"layers", FLAG_INT, &o.layers, "layers", 0, 512},
        {"ff", FLAG_INT, &o.ff, "width of the MLP", 0, 262144},
        {"heads", FLAG_INT, &o.heads, "query heads", 0, 1024},
        {"kv-heads", FLAG_INT, &o.kv_heads, "key and value heads", 0, 1024},
        {"vocab", FLAG_INT, &o.vocab, "vocabulary", 0, 1 << 20},
        {"only", FLAG_TEXT, &o.only, "what is measured", .choices = "both|training|sampling"},
        {"peak", FLAG_FLOAT, &o.peak, "TFLOP/s that shares are of; 0: a square product's", 0, 1e6},
        {"length", FLAG_INT, &o.length, "tokens of a training sequence", 2, 100000},
        {"sequences", FLAG_INT, &o.sequences, "training sequences of a step", 1, 100000},
        {"steps", FLAG_INT, &o.steps, "training steps; the fastest counts", 1, 1000},
        {"max-tokens", FLAG_INT, &o.max_tokens, "of a micro-batch; 0: by memory", 0, 1 << 24},
        {"lora", FLAG_INT, &o.lora, "rank of an adapter to train; 0: all weights", 0, 512},
        {"recompute", FLAG_TEXT, &o.recompute, "activations computed again in the backward pass",
         .choices = "auto|on|off"},
        {"lean", FLAG_BOOL, &o.lean, "no fp32 masters, stochastic rounding"},
        {"needs-logp", FLAG_BOOL, &o.needs_logp,
         "a loss whose weights depend on log-probabilities: two passes of the head"},
        {"profile", FLAG_BOOL, &o.profile, "print the operations of a training step by their time"},
        {"batch", FLAG_INT, &o.batch, "rows decoded together", 1, 4096},
        {"prompt", FLAG_INT, &o.prompt, "tokens of a prompt", 1, 100000},
        {"max-new", FLAG_INT, &o.new_tokens, "tokens of a sample", 1, 100000},
        {"copies", FLAG_INT, &o.copies, "samples of a prompt", 1, 4096},
        {0},
    };
    FlagSpec spec = {"quern-modelbench",
                     "",
                     "Prints tokens a second of training and sampling, and of plain products.",
                     flags,
                     0,
                     0,
                     0};
    flags_parse(&spec, argc, argv, NULL);
    Error err;
    if (run(&o, &err)) log_die(&err);
    return log_close(0);
}
