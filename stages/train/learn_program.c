/* --plan, or: inputs, nothing to do, examples, training. */
#include "stages/train/learn_program.h"

#include "base/log.h"
#include "base/stop.h"

static int run(const LearnProgram *p, LearnOptions *l, ArtifactSpec *spec, Error *err)
{
    Example *ex = NULL;
    long n = 0;
    if (p->engine->plan)
        return engine_plan(p->engine, l->base, p->small, !loss_needs_logp(&l->training.loss), err);
    if (p->inputs(p->stage, spec, err)) return -1;
    int rc = learn_begin(l, err);
    if (rc != 1) return rc;
    rc = -(p->examples(p->stage, l, &ex, &n, err) || learn_run(l, ex, n, err));
    examples_free(ex, n);
    return rc;
}

int learn_program(const LearnProgram *p, LearnOptions *l)
{
    Error err;
    ArtifactSpec spec;
    engine_check(p->engine, p->program, l->base);
    engine_required(p->engine, p->program, p->required);
    flags_checked();
    log_open(p->program->program);
    stop_install();
    config_spec(&spec, "manifest", p->program, p->defaults);
    engine_config(p->engine, &spec);
    l->spec = &spec;
    l->engine = p->engine;
    if (run(p, l, &spec, &err)) log_die(&err);
    artifact_spec_release(&spec);
    return log_close(EXIT_STATUS_OK);
}
