/* quern-devices: list the devices of this machine, GPUs first; or what a GPU of some memory times at the
 * sizes of the tasks' modules. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/judge/contents/own_sizes.h"
#include "eval/sim/time/profile.h"
#include "gpu/gpus.h"
#include "tasks/task.h"

/* Of a GPU that is sold with 80 GB. */
static const double usual_gib = 79.6, gib = (double)(1 << 30);

static void list(int only_gpus)
{
    Gpu gpus[GPUS_MAX];
    Error err;
    int n = gpus_list(gpus, GPUS_MAX, &err);
    if (n < 0) log_warn("%s", err.text);
    for (int i = 0; i < n; i++) printf("cuda:%d %s\n", gpus[i].ordinal, gpus[i].name);
    const Profile *p;
    for (int i = 0; !only_gpus && (p = profile_at(i)); i++)
        printf("sim:%s sim:%s\n", p->name, p->name);
}

/* 1: a GPU with so much memory times the task's timed workload as its module has it. */
static int is_own(Task *t, double memory)
{
    const DeviceInfo d = {.total_bytes = (size_t)(memory * gib)};
    OwnSizes s;
    if (!t->own) return 1;
    if (own_sizes_find(t, &s)) {
        printf("%s: shortened: its own sizes cannot be bound\n", t->name);
        return 0;
    }
    if (own_sizes_fit(&s, &d)) return 1;
    if (isinf(s.tensors) || s.largest >= (double)INT32_MAX)
        printf("%s: shortened: a tensor of 2^31 elements or more\n", t->name);
    else
        printf("%s: shortened: inputs and outputs of %.1f GiB, %.1f GiB between them, contents of "
               "%.1f GiB in float64\n",
               t->name, s.tensors / gib, s.between / gib, s.drawn / gib);
    return 0;
}

static int own_sizes(const char *names, double memory)
{
    TaskSet set;
    Error err;
    int n = 0;
    if (taskset_load(NULL, names, &set, &err)) log_die(&err);
    for (int i = 0; i < set.n; i++) n += is_own(set.tasks[i], memory);
    printf("%d of %d tasks are timed at their modules' own sizes by a GPU with %.4g GiB\n", n,
           set.n, memory);
    taskset_release(&set);
    return 0;
}

int main(int argc, char **argv)
{
    process_again_with("OMP_WAIT_POLICY", "passive", argv); /* threads sleep without work */
    memory_keep();
    const char *words[1], *names = NULL;
    double memory = usual_gib;
    int only_gpus = 0;
    const Flag flags[] = {
        {"gpus", FLAG_BOOL, &only_gpus, "leave out the simulators; nothing printed: no GPU"},
        {"own-sizes", FLAG_TEXT, &names,
         "instead: how many of these tasks or sets, by comma, a GPU times at the sizes that their "
         "modules have, and which it does not"},
        {"memory", FLAG_FLOAT, &memory, "of that GPU, in GiB; one of 80 GB has 79.6", 1, 4096},
        {0}};
    const FlagSpec spec = {
        .program = "quern-devices",
        .synopsis = "[--gpus] | --own-sizes NAMES [--memory GIB]",
        .about = "Lists the devices that this machine can evaluate on, a line each: the name that "
                 "--device takes, "
                 "and the device class under which the queue hands it jobs. GPUs come first.",
        .flags = flags};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-devices");
    if (names) return log_close(own_sizes(names, memory));
    list(only_gpus);
    return log_close(0);
}
