/* What quern-compile and its client say to each other: frames of fields, each a length (u32 LE) and
 * bytes. A frame is its own length (u32 LE) and payload.
 *   hello    "hello", version, flags | "failed", why
 *   request  cpu seconds (text), arch, source, kernel name...
 *   reply    status, log, PTX, cubin, lowered name...
 *            status: "ok" | "refused" (the log says why) | "limit" (log: a sentence) | "failed"
 * (the compiler process itself could not work; log: a sentence) */
#ifndef EVAL_COMPILE_WIRE_H
#define EVAL_COMPILE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

int wire_put(Buffer *b, const void *data, size_t len);
int wire_puts(Buffer *b, const char *s);

typedef struct {
    const char *p, *end;
} WireCursor;

/* The next field; -1 at the end or when it is torn. Points into the payload. */
int wire_get(WireCursor *c, const char **data, size_t *len);

/* Frames over file descriptors. deadline_s: seconds from now; 0: none. read returns 1 with a
 * payload, 0 at end of file, -1 with an error. */
int wire_write_frame(int fd, const void *payload, size_t len, Error *err);
int wire_read_frame(int fd, size_t max, double timeout_s, Buffer *out, Error *err);

#endif
