/* The sentence and outcome of a fault. */
#include "eval/device/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int set(Fault *f, Outcome outcome, int line, const char *fmt, va_list ap)
{
    Fault fresh = {.outcome = outcome, .line = line};
    vsnprintf(fresh.message, sizeof fresh.message, fmt, ap); /* which may show f's own message */
    *f = fresh;
    return 1;
}

int fault_set(Fault *f, Outcome outcome, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = set(f, outcome, line, fmt, ap);
    va_end(ap);
    return rc;
}

int fault_cheat(Fault *f, const char *cheat, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = set(f, OUTCOME_CHEAT, 0, fmt, ap);
    va_end(ap);
    snprintf(f->cheat, sizeof f->cheat, "%s", cheat);
    return rc;
}

int fault_as_error(const Fault *f, int rc, Error *err)
{
    if (rc > 0) return error_set(err, ERROR_DEVICE, "%.1000s", f->message);
    if (rc < 0 && err) *err = f->error;
    return rc;
}

void fault_place(Fault *f, const char *where)
{
    size_t used = strlen(f->message);
    snprintf(f->message + used, sizeof f->message - used, " (%s)", where);
}
