#include "eval/device/device.h"

#include <stdio.h>
#include <string.h>

static const DeviceOps *const tables[] = {&sim_device_ops, &cuda_device_ops};

const DeviceOps *device_find(const char *name, const char **arg, Error *err)
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strlen(tables[i]->prefix) != n || memcmp(tables[i]->prefix, name, n)) continue;
        if (!colon || !colon[1]) {
            error_set(
                err, ERROR_INVALID,
                "device \"%s\": expected sim:PROFILE, such as sim:h100, or cuda:N, such as cuda:0",
                name);
            return NULL;
        }
        *arg = colon + 1;
        return tables[i];
    }
    error_set(err, ERROR_INVALID,
              "device \"%s\": expected cuda:N, a GPU, or sim:PROFILE, where PROFILE is a100, h100, "
              "h200, l40, rtx3090 or h20",
              name);
    return NULL;
}

void device_kernel_name(const char *lowered, char *out, size_t size)
{
    const char *p = lowered;
    size_t n = 0;
    if (p[0] == '_' && p[1] == 'Z' && p[2] >= '1' && p[2] <= '9') {
        for (p += 2; *p >= '0' && *p <= '9' && n < 1000; p++) n = n * 10 + (size_t)(*p - '0');
        if (n && n <= strlen(p)) {
            snprintf(out, size, "%.*s", (int)n, p);
            return;
        }
    }
    snprintf(out, size, "%s", lowered);
}
