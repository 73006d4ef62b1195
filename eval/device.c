#include "eval/device.h"

#include <string.h>

static const DeviceOps *const tables[] = {&sim_device_ops};

const DeviceOps *device_find(const char *name, const char **arg, Error *err)
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strlen(tables[i]->prefix) != n || memcmp(tables[i]->prefix, name, n)) continue;
        if (!colon || !colon[1]) {
            error_set(err, "device \"%s\": expected \"%s:\" and a profile, such as sim:h100", name, tables[i]->prefix);
            return NULL;
        }
        *arg = colon + 1;
        return tables[i];
    }
    if (n == 4 && !memcmp(name, "cuda", 4)) {
        error_set(err, "device \"%s\": this build has no cuda device yet; use sim:PROFILE, such as sim:h100", name);
        return NULL;
    }
    error_set(err, "device \"%s\": expected sim:PROFILE, where PROFILE is a100, h100, h200, l40, rtx3090 or h20", name);
    return NULL;
}
