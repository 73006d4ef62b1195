/* The protocol between quern-compile and its client. A frame is a length (u32, little-endian) and a
 * payload of fields; a field is a length (u32, little-endian) and bytes.
 *
 *   hello    "hello", version, flags, "folders" or "", CUTLASS's version or "" | "failed", sentence
 *   request  CPU seconds (text), arch, source, kernel name...
 *   reply    status, log, [PTX, cubin, lowered name...,] CPU seconds, limit of them, "CUTLASS ..." or ""
 *   status   "ok"
 *            "refused"  NVRTC's log says why
 *            "limit"    log: a sentence about the source
 *            "time"     as "limit": the CPU time was used up, which depends on the machine
 *            "failed"   log: a sentence about the compiler process
 *            "taken"    log: headers_taken; the reply to a request of 0 CPU seconds */
#ifndef EVAL_COMPILE_WIRE_H
#define EVAL_COMPILE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Sources that include CUTLASS get as many times the CPU seconds: a Hopper collective takes 14. */
enum { WIRE_CUTLASS_FACTOR = 3 };

/* Append a field. -1: the buffer is full. */
int wire_put(Buffer *b, const void *data, size_t len);
int wire_puts(Buffer *b, const char *s);

typedef struct {
    const char *p, *end;
} WireCursor;

/* The next field, pointing into the payload; -1 at the end or when the field is cut short. */
int wire_get(WireCursor *c, const char **data, size_t *len);

/* Send and receive frames. timeout_s: seconds; 0: no limit. wire_read_frame returns 1 with a
 * payload, 0 at the end of the file, -1 with an error. */
int wire_write_frame(int fd, const void *payload, size_t len, Error *err);
int wire_read_frame(int fd, size_t max, double timeout_s, Buffer *out, Error *err);

#endif
