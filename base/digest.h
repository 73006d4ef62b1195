/* SHA-256 (FIPS 180-4, by libcrypto) names content; CRC-32C (Castagnoli) guards journal records. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DIGEST_BYTES = 32, DIGEST_HEX = 65 };

typedef struct {
    unsigned char bytes[DIGEST_BYTES];
} Digest;

typedef struct {
    void *ctx; /* EVP_MD_CTX */
} Digester;

void digester_init(Digester *d);
void digester_add(Digester *d, const void *data, size_t len);
/* Adds the length and then the bytes, so that two fields never read as one. */
void digester_add_field(Digester *d, const void *data, size_t len);
void digester_finish(Digester *d, Digest *out); /* releases d */

void digest_of(const void *data, size_t len, Digest *out);
void digest_hex(const Digest *d, char out[DIGEST_HEX]);
uint32_t digest_crc32c(uint32_t crc, const void *data, size_t len); /* start with 0 */

/* ---- the SHA-256 of a file's content ---- */
/* The file is read in pieces, since a checkpoint's may be larger than memory. bytes receives its
 * length; NULL: not needed. */
int file_digest(const char *path, char hex[DIGEST_HEX], int64_t *bytes, Error *err);

#endif
