/* The seal of a job's body or of a verdict: an HMAC-SHA256 behind its bytes, with the secret in
 * QUERN_KEY. Where a Redis server is shared, it keeps out jobs and verdicts of those who do not know
 * the secret. Without QUERN_KEY nothing is sealed, and everything is accepted as before. */
#ifndef EVAL_SERVE_SEAL_H
#define EVAL_SERVE_SEAL_H

#include "base/buffer.h"
#include "base/error.h"

/* What is sealed: a seal of one kind is none of the other. */
typedef enum { SEAL_JOB, SEAL_VERDICT } SealKind;

enum { SEAL_BYTES = 32, SEAL_KEY_MIN = 16 };

/* Check QUERN_KEY at a program's start: it is unset, or has SEAL_KEY_MIN bytes or more. */
int seal_check_key(Error *err);

/* Append the seal. */
int seal_add(SealKind kind, Buffer *b, Error *err);

/* Check the seal of data. *len becomes the length without it. ERROR_CORRUPT: there is none, or it is
 * of another secret. */
int seal_open(SealKind kind, const void *data, size_t *len, Error *err);

#endif
