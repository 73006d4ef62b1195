/* Error values: formatting, codes and their exit statuses. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void scrub(char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f) *s = '?';
}

int error_set(Error *err, ErrorCode code, const char *fmt, ...)
{
    if (!err) return -1;
    err->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    scrub(err->text);
    return -1;
}

/* A folder where a file is expected, or a file where a folder is, is as wrong a name as none. */
static ErrorCode code_of(int number)
{
    if (number == ENOENT || number == EISDIR || number == ENOTDIR) return ERROR_NOT_FOUND;
    return number == ENOMEM ? ERROR_MEMORY : ERROR_IO;
}

int error_errno(Error *err, const char *fmt, ...)
{
    int saved = errno;
    if (!err) return -1;
    err->code = code_of(saved);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(saved));
    scrub(err->text);
    errno = saved;
    return -1;
}

int error_prefix(Error *err, const char *fmt, ...)
{
    if (!err) return -1;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old);
    scrub(err->text);
    return -1;
}

static const int exit_status[] = {
#define X(code, status, meaning) status,
    ERROR_CODES(X)
#undef X
};

int error_exit_status(ErrorCode code)
{
    return code < ERROR_CODE_COUNT ? exit_status[code] : EXIT_STATUS_FAILED;
}
