/* The draw of wide tasks depends on the seed and the stage's name, which has the round. */
#include "lab/wide.h"

#include <string.h>

#include "base/log.h"

int wide_load(const char *root, const char *names, const TaskSet *own, Wide *w, Error *err)
{
    if (taskset_load(root, names, &w->tasks, err)) return -1;
    int n = 0;
    for (int i = 0; i < w->tasks.n; i++) {
        const char *name = w->tasks.tasks[i]->name;
        n += !w->tasks.tasks[i]->heldout;
        if (taskset_find(own, name, strlen(name)))
            return error_set(err, ERROR_INVALID,
                             "--wide: expected other tasks than --tasks, found %s", name);
    }
    if (w->ask > n)
        log_warn("--wide-ask %d: --wide has %d train tasks, and all are asked", w->ask, n);
    return 0;
}

int wide_write(void *ctx, const Prompts *p, Error *err)
{
    const Wide *w = ctx;
    const PromptOptions *o = p->o;
    int n = 0, rc = 0, left = w->ask;
    for (int i = 0; i < w->tasks.n; i++) n += !w->tasks.tasks[i]->heldout;
    Random rng;
    random_init(&rng, o->seed, random_hash(o->stage, strlen(o->stage)));
    for (int i = 0; i < w->tasks.n && left && !rc; i++) {
        const Task *t = w->tasks.tasks[i];
        if (t->heldout) continue;
        /* Of n tasks that are left, `left` are still to be drawn. */
        if (random_below(&rng, (uint64_t)n--) >= (uint64_t)left) continue;
        left--;
        for (int g = 0; g < o->groups && !rc; g++) rc = prompts_write_one(p, t, g, w->copies, err);
    }
    return rc;
}
