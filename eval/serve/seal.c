/* HMAC by libcrypto. The message begins with the kind, and the comparison takes the same time for
 * every wrong seal. */
#include "eval/serve/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The secret, or NULL without one. */
static const char *secret(void)
{
    const char *text = getenv("QUERN_KEY");
    return text && *text ? text : NULL;
}

int seal_check_key(Error *err)
{
    const char *key = secret();
    if (!key || strlen(key) >= SEAL_KEY_MIN) return 0;
    return error_set(err, ERROR_USAGE, "QUERN_KEY expects at least %d bytes, found %zu",
                     SEAL_KEY_MIN, strlen(key));
}

static int compute(SealKind kind, const void *data, size_t len, unsigned char out[SEAL_BYTES],
                   Error *err)
{
    const char *key = secret();
    unsigned n = 0;
    unsigned char *text = memory_alloc(len + 1);
    text[0] = kind == SEAL_JOB ? 'j' : 'v';
    if (len) memcpy(text + 1, data, len);
    int ok = HMAC(EVP_sha256(), key, (int)strlen(key), text, len + 1, out, &n) && n == SEAL_BYTES;
    free(text);
    return ok ? 0 : error_set(err, ERROR_INVALID, "libcrypto cannot compute an HMAC-SHA256");
}

int seal_add(SealKind kind, Buffer *b, Error *err)
{
    unsigned char seal[SEAL_BYTES];
    if (!secret()) return 0;
    if (compute(kind, b->data, b->len, seal, err)) return -1;
    if (!buffer_append(b, seal, sizeof seal)) return 0;
    return error_set(err, ERROR_LIMIT, "a sealed job or verdict of %zu bytes is too large", b->len);
}

int seal_open(SealKind kind, const void *data, size_t *len, Error *err)
{
    unsigned char seal[SEAL_BYTES];
    const char *what = kind == SEAL_JOB ? "a job" : "a verdict";
    if (!secret()) return 0;
    if (*len < SEAL_BYTES)
        return error_set(err, ERROR_CORRUPT, "%s without a seal, where QUERN_KEY asks for one",
                         what);
    size_t n = *len - SEAL_BYTES;
    if (compute(kind, data, n, seal, err)) return -1;
    if (CRYPTO_memcmp(seal, (const unsigned char *)data + n, SEAL_BYTES))
        return error_set(err, ERROR_CORRUPT, "%s whose seal is not of this QUERN_KEY", what);
    *len = n;
    return 0;
}
