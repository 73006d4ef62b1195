/* Two threads, joined at most once each. */
#include "eval/judge/prepare.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/candidate.h"

enum { CONTENTS = 2 }; /* draws of the timed workload, as many as paired_timing.c has sets */

typedef struct {
    pthread_t thread;
    int running;
    atomic_int done;
} Worker;

struct Prepare {
    PrepareOptions opt;
    char arch[16];
    Worker compiling, drawing;
};

static void compile(Prepare *p, const Candidate *c)
{
    const char *key;
    CompileResult r;
    if (!c->plan.n_kernels) return;
    const char **names = plan_kernel_names(&c->plan);
    CompileRequest request = {p->arch,           c->source, c->len,
                              c->plan.n_kernels, names,     c->plan.n_ops > 0};
    if (!compiler_run(p->opt.compiler, &request, &r, NULL)) {
        const Buffer *reply = compiler_reply(p->opt.compiler, &key);
        compiler_offer(p->opt.compiler, key, reply->data, reply->len);
    }
    compile_result_release(&r);
    free(names);
}

static void *compile_both(void *of)
{
    Prepare *p = of;
    Candidate c;
    Outcome outcome;
    Error err;
    int line;
    if (!candidate_parse(p->opt.source, p->opt.len, &c, &outcome, &line, &err)) compile(p, &c);
    candidate_release(&c);
    if (!candidate_parse_trusted(p->opt.baseline, strlen(p->opt.baseline), &c, &outcome, &line,
                                 &err))
        compile(p, &c);
    candidate_release(&c);
    log_debug("candidate and baseline precompiled");
    return NULL;
}

static void *draw(void *of)
{
    Prepare *p = of;
    const PrepareOptions *o = &p->opt;
    Error err;
    for (int i = 0; i < CONTENTS; i++)
        if (cases_draw(o->cases, o->task, o->timed, VARIANT_DRAWN,
                       case_seed(o->seed, o->task, o->timed, i), 1.0, &err))
            break;
    log_debug("timed contents drawn");
    p->drawing.done = 1;
    return NULL;
}

static void begin(Worker *s, void *(*work)(void *), Prepare *p)
{
    s->running = !pthread_create(&s->thread, NULL, work, p);
}

static void join(Worker *s)
{
    if (s->running) pthread_join(s->thread, NULL);
    s->running = 0;
}

Prepare *prepare_begin(const PrepareOptions *opt)
{
    Prepare *p = memory_alloc(sizeof *p);
    p->opt = *opt;
    memcpy(p->arch, opt->arch, strnlen(opt->arch, sizeof p->arch - 1));
    begin(&p->drawing, draw, p);
    begin(&p->compiling, compile_both, p);
    return p;
}

void prepare_compiled(Prepare *p)
{
    if (p) join(&p->compiling);
}

void prepare_drawn(Prepare *p)
{
    if (p) join(&p->drawing);
}

int prepare_contents(Prepare *p, Error *err)
{
    if (!p || !p->drawing.done) return 0;
    const PrepareOptions *o = &p->opt;
    prepare_drawn(p);
    for (int i = 0; i < CONTENTS; i++)
        if (!cases_get(o->cases, o->task, o->timed, VARIANT_DRAWN,
                       case_seed(o->seed, o->task, o->timed, i), 1.0, err))
            return -1;
    log_debug("timed contents on the device");
    return 0;
}

void prepare_end(Prepare *p)
{
    prepare_compiled(p);
    prepare_drawn(p);
    free(p);
}
