/* The payload of an artifact as it is stored: records repeat their texts, and zlib takes a tenth to a
 * twentieth of them. A payload below PACK_LEAST bytes is stored as it is. */
#ifndef ARTIFACTS_PACK_H
#define ARTIFACTS_PACK_H

#include "base/buffer.h"
#include "base/error.h"

enum { PACK_LEAST = 64 << 10 };

/* Packs into *out, an initialised buffer. Returns 1 when it is worth it, else 0. Equal bytes give
 * equal bytes with one version of zlib. */
int pack_payload(const void *data, size_t len, Buffer *out);

/* Unpacks into *out, an initialised buffer, exactly `expected` bytes, which the packed bytes must be
 * able to hold. `where` begins the error's sentence. */
int unpack_payload(const void *data, size_t len, size_t expected, const char *where, Buffer *out,
                   Error *err);

#endif
