/* Apart from the registry, so that a program that needs names alone links no device. */
#include <stdio.h>
#include <string.h>

#include "eval/device/device.h"
#include "ops/op.h"

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

int device_launch_is_constant(const DeviceLaunch *l)
{
    Error ignored;
    const Op *op = l->op_line && l->op ? op_find(l->op, &ignored) : NULL;
    return op && op->flags & OP_CONSTANT;
}
