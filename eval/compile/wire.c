/* Frames over pipes. Every length is checked before it is used. */
#include "eval/compile/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

static void store_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}

static uint32_t load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int wire_put(Buffer *b, const void *data, size_t len)
{
    unsigned char head[4];
    if (len > UINT32_MAX || b->len + 4 + len > b->max) {
        b->full = 1;
        return -1;
    }
    store_u32(head, (uint32_t)len);
    return buffer_append(b, head, 4) || buffer_append(b, data, len) ? -1 : 0;
}

int wire_puts(Buffer *b, const char *s)
{
    return wire_put(b, s, strlen(s));
}

int wire_get(WireCursor *c, const char **data, size_t *len)
{
    if (c->end - c->p < 4) return -1;
    uint32_t n = load_u32((const unsigned char *)c->p);
    if ((size_t)(c->end - c->p) - 4 < n) return -1;
    *data = c->p + 4;
    *len = n;
    c->p += 4 + (size_t)n;
    return 0;
}

int wire_write_frame(int fd, const void *payload, size_t len, Error *err)
{
    unsigned char head[4];
    if (len > UINT32_MAX)
        return error_set(err, ERROR_LIMIT, "a message of %zu bytes does not fit a frame", len);
    store_u32(head, (uint32_t)len);
    if (file_write_all(fd, head, 4, "the compiler's pipe", err)) return -1;
    return file_write_all(fd, payload, len, "the compiler's pipe", err);
}

/* Read exactly len bytes. Returns 1, 0 when the pipe ended before the first byte, or -1. */
static int read_exactly(int fd, void *data, size_t len, double deadline, Error *err)
{
    size_t done = 0;
    while (done < len) {
        double left = deadline > 0 ? deadline - clock_seconds() : 3600;
        struct pollfd p = {fd, POLLIN, 0};
        int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 && deadline > 0)
            return error_set(err, ERROR_COMPILER, "no answer from the compiler process in time");
        if (ready <= 0) continue;
        ssize_t n = read(fd, (char *)data + done, len - done);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return error_errno(err, "cannot read from the compiler process");
        if (n == 0)
            return done ? error_set(err, ERROR_COMPILER,
                                    "the compiler process ended in the middle of a message")
                        : 0;
        done += (size_t)n;
    }
    return 1;
}

int wire_read_frame(int fd, size_t max, double timeout_s, Buffer *out, Error *err)
{
    unsigned char head[4];
    char chunk[65536];
    double deadline = timeout_s > 0 ? clock_seconds() + timeout_s : 0;
    buffer_clear(out);
    int rc = read_exactly(fd, head, 4, deadline, err);
    if (rc <= 0) return rc;
    size_t len = load_u32(head);
    if (len > max)
        return error_set(err, ERROR_LIMIT, "a message of %zu bytes; expected at most %zu", len,
                         max);
    while (len) {
        size_t n = len < sizeof chunk ? len : sizeof chunk;
        rc = read_exactly(fd, chunk, n, deadline, err);
        if (rc == 0)
            return error_set(err, ERROR_COMPILER,
                             "the compiler process ended in the middle of a message");
        if (rc < 0) return -1;
        if (buffer_append(out, chunk, n))
            return error_set(err, ERROR_LIMIT, "a message of more than %zu bytes", out->max);
        len -= n;
    }
    return 1;
}
