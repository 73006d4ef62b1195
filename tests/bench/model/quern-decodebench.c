/* quern-decodebench: the speed of decoding at one model shape. */
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/model_device.h"
#include "tests/bench/model/bench.h"
#include "tests/bench/model/bench_decode.h"

typedef struct {
    const char *engine, *shape;
    int64_t batch, prompt, new_tokens, lora;
    double bandwidth;
    int parts;
} Options;

static int run(const Options *o, Error *err)
{
    const Ops *ops;
    ModelConfig c;
    Model *m;
    if (model_device(o->engine, &ops, err) || bench_shape(o->shape, &c, err) ||
        bench_model(&c, ops, &m, err))
        return -1;
    LoraOptions lora = {
        .rank = (int)o->lora, .alpha = 2 * (double)o->lora, .targets = LORA_ALL, .seed = 1};
    BenchDecode b = {(int)o->batch, (int)o->prompt, (int)o->new_tokens, o->bandwidth * 1e12};
    int rc = o->lora ? model_add_lora(m, &lora, err) : 0;
    if (!rc)
        printf("model: %s, %zu parameters%s, on %s\n", o->shape, model_parameters(m),
               o->lora ? " and an adapter" : "", o->engine);
    if (!rc) rc = bench_decode(m, &b, err);
    if (!rc && o->parts && ops == ops_cpu())
        rc = error_set(err, ERROR_USAGE, "--parts needs a GPU");
    if (!rc && o->parts)
        rc = bench_step_parts(m, b.batch, b.prompt + b.new_tokens / 2, b.bandwidth, err);
    model_free(m);
    return rc;
}

int main(int argc, char **argv)
{
    log_open("quern-decodebench");
    Options o = {.engine = "cpu", .shape = "tiny", .batch = 64, .prompt = 512, .new_tokens = 128};
    Flag flags[] = {
        {"engine", FLAG_TEXT, &o.engine, "cpu, cuda:N or auto"},
        {"shape", FLAG_TEXT, &o.shape, "of which model", .choices = bench_shape_names()},
        {"batch", FLAG_INT, &o.batch, "rows decoded together", 1, 4096},
        {"prompt", FLAG_INT, &o.prompt, "tokens of each row's prompt", 1, 100000},
        {"max-new", FLAG_INT, &o.new_tokens, "tokens of a sample", 3, 100000},
        {"lora", FLAG_INT, &o.lora, "rank of an adapter, not merged; 0: none", 0, 512},
        {"bandwidth", FLAG_FLOAT, &o.bandwidth, "TB/s that shares are of; 0: none", 0, 1e3},
        {"parts", FLAG_BOOL, &o.parts, "print what the parts of a step cost"},
        {0},
    };
    FlagSpec spec = {
        "quern-decodebench", "", "Prints tokens a second of decoding.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, NULL);
    Error err;
    if (run(&o, &err)) log_die(&err);
    return log_close(0);
}
