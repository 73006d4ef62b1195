/* quern-devices: list the devices of this machine, GPUs first. */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "eval/sim/time/profile.h"
#include "gpu/gpus.h"

int main(int argc, char **argv)
{
    const char *words[1];
    int only_gpus = 0;
    const Flag flags[] = {
        {"gpus", FLAG_BOOL, &only_gpus, "leave out the simulators; nothing printed: no GPU"}, {0}};
    const FlagSpec spec = {
        .program = "quern-devices",
        .synopsis = "[--gpus]",
        .about = "Lists the devices that this machine can evaluate on, a line each: the name that "
                 "--device takes, "
                 "and the device class under which the queue hands it jobs. GPUs come first.",
        .flags = flags};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-devices");
    Gpu gpus[GPUS_MAX];
    Error err;
    int n = gpus_list(gpus, GPUS_MAX, &err);
    if (n < 0) log_warn("%s", err.text);
    for (int i = 0; i < n; i++) printf("cuda:%d %s\n", gpus[i].ordinal, gpus[i].name);
    const Profile *p;
    for (int i = 0; !only_gpus && (p = profile_at(i)); i++)
        printf("sim:%s sim:%s\n", p->name, p->name);
    return log_close(0);
}
