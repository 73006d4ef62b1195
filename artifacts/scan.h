/* Inside artifacts: the bytes of records, before they are decoded and after they are encoded.
 *
 * scan_record is a walk over msgpack bytes that allocates nothing. It checks every claimed length
 * against the bytes present before msgpack-c, which allocates by the claim, reads them. It also
 * requires the canonical form of a record: a map with sorted, unique text keys and no extension
 * types. */
#ifndef ARTIFACTS_SCAN_H
#define ARTIFACTS_SCAN_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum { SCAN_MAX_DEPTH = 8 };

/* Sets *used to the length of the map that data begins with. `where` names the record in errors. */
int scan_record(const void *data, size_t len, const char *where, size_t *used, Error *err);

/* ---- the payload as it is stored: records repeat their texts, and zlib takes a tenth to a twentieth of
 * them. A payload below PACK_LEAST bytes is stored as it is. ---- */
enum { PACK_LEAST = 64 << 10 };

/* Packs into *out, an initialised buffer. Returns 1 when it is worth it, else 0. Equal bytes give
 * equal bytes with one version of zlib. */
int pack_payload(const void *data, size_t len, Buffer *out);

/* Unpacks into *out, an initialised buffer, exactly `expected` bytes, which the packed bytes must be
 * able to hold. `where` begins the error's sentence. */
int unpack_payload(const void *data, size_t len, size_t expected, const char *where, Buffer *out,
                   Error *err);

#endif
