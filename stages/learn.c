#include "stages/learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

int learn_example(const Sample *s, double advantage, int with_old, Example *out, Error *err)
{
    if (!s->ids || !s->prompt_ids || (with_old && !s->logprobs))
        return error_set(err, "sample %s holds no token ids: only answers of the native engine train it", s->id);
    *out = (Example){.len = s->n_prompt + s->n_ids, .prompt = s->n_prompt, .advantage = advantage};
    out->ids = memory_array((size_t)out->len, sizeof *out->ids);
    memcpy(out->ids, s->prompt_ids, (size_t)s->n_prompt * sizeof *out->ids);
    memcpy(out->ids + s->n_prompt, s->ids, (size_t)s->n_ids * sizeof *out->ids);
    if (with_old) {
        out->old_logp = memory_array((size_t)s->n_ids, sizeof *out->old_logp);
        memcpy(out->old_logp, s->logprobs, (size_t)s->n_ids * sizeof *out->old_logp);
    }
    return 0;
}

static int reference_logprobs(const char *dir, Example *ex, long n, Error *err)
{
    Policy ref;
    if (policy_load(dir, &ref, err)) return -1;
    float **lp = memory_array((size_t)n, sizeof *lp);
    int rc = training_logprobs(ref.model, ex, n, 32, lp, err);
    for (long i = 0; i < n; i++) ex[i].ref_logp = lp[i];
    free(lp);
    policy_release(&ref);
    return rc;
}

int learn_run(const LearnOptions *o, Example *ex, long n, Error *err)
{
    char metrics[4096], checkpoint[4096];
    snprintf(metrics, sizeof metrics, "%s/metrics.qa", o->output);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", o->output);
    TrainingOptions t = o->training;
    t.checkpoint = checkpoint;
    t.spec = o->spec;
    Policy p;
    if (policy_load(o->base, &p, err)) return -1;
    int rc = file_mkdirs(o->output, err);
    if (!rc && o->reference && n) rc = reference_logprobs(o->reference, ex, n, err);
    if (!rc && n == 0) log_warn("nothing to learn from in this round: the weights stay as they are");
    if (!rc && n) rc = training_run(p.model, ex, n, &t, metrics, err);
    if (!rc) rc = policy_save(&p, o->output, o->base, o->spec, err);
    if (!rc) training_forget(&t);
    policy_release(&p);
    return rc;
}
