/* One call of zlib each way. */
#include "artifacts/scan.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/memory.h"

enum { LEVEL = 6, MAX_RATIO = 1032 /* of deflate */, SLACK = 64 };

int pack_payload(const void *data, size_t len, Buffer *out)
{
    if (len < PACK_LEAST || len > UINT_MAX / 2) return 0;
    uLongf size = compressBound((uLong)len);
    unsigned char *packed = memory_alloc(size);
    int worth = compress2(packed, &size, data, (uLong)len, LEVEL) == Z_OK && size < len / 8 * 7 &&
                !buffer_append(out, packed, size);
    free(packed);
    return worth;
}

int unpack_payload(const void *data, size_t len, size_t expected, const char *where, Buffer *out,
                   Error *err)
{
    if (expected > len * MAX_RATIO + SLACK || expected > out->max)
        return error_set(err, ERROR_CORRUPT,
                         "%s, header, field packed: %zu bytes are claimed, which %zu packed bytes "
                         "cannot hold",
                         where, expected, len);
    unsigned char *bytes = memory_alloc(expected + 1);
    uLongf size = (uLongf)expected;
    int rc = uncompress(bytes, &size, data, (uLong)len);
    if (rc != Z_OK || size != expected)
        error_set(err, ERROR_CORRUPT, "%s: the packed records are damaged (zlib: %s)", where,
                  rc == Z_OK ? "fewer bytes than claimed" : zError(rc));
    else
        buffer_append(out, bytes, expected);
    free(bytes);
    return rc == Z_OK && size == expected ? 0 : -1;
}
