/* SHA-256 by libcrypto, and CRC-32C by a table. */
#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/memory.h"

static void must(int ok)
{
    if (ok) return;
    fprintf(stderr, "quern: libcrypto refused a SHA-256 step\n");
    exit(EXIT_STATUS_SYSTEM);
}

void digester_init(Digester *d)
{
    d->ctx = EVP_MD_CTX_new();
    must(d->ctx && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL));
}

void digester_add(Digester *d, const void *data, size_t len)
{
    must(EVP_DigestUpdate(d->ctx, data, len));
}

void digester_add_field(Digester *d, const void *data, size_t len)
{
    unsigned char n[8];
    for (int i = 0; i < 8; i++) n[i] = (unsigned char)((uint64_t)len >> (8 * i));
    digester_add(d, n, sizeof n);
    digester_add(d, data, len);
}

void digester_finish(Digester *d, Digest *out)
{
    must(EVP_DigestFinal_ex(d->ctx, out->bytes, NULL));
    EVP_MD_CTX_free(d->ctx);
    d->ctx = NULL;
}

void digest_of(const void *data, size_t len, Digest *out)
{
    must(EVP_Digest(data, len, out->bytes, NULL, EVP_sha256(), NULL));
}

void digest_hex(const Digest *d, char out[DIGEST_HEX])
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < DIGEST_BYTES; i++) {
        out[2 * i] = hex[d->bytes[i] >> 4];
        out[2 * i + 1] = hex[d->bytes[i] & 15];
    }
    out[2 * DIGEST_BYTES] = 0;
}

uint32_t digest_crc32c(uint32_t crc, const void *data, size_t len)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
            table[i] = c;
        }
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t i = 0; i < len; i++) crc = table[(crc ^ p[i]) & 255] ^ (crc >> 8);
    return ~crc;
}

/* ---- files ---- */

enum { CHUNK = 1 << 20 };

int file_digest(const char *path, char hex[DIGEST_HEX], int64_t *bytes, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "cannot open %s", path);
    char *chunk = memory_alloc(CHUNK);
    Digester g;
    Digest d;
    ssize_t n;
    int64_t total = 0;
    digester_init(&g);
    while ((n = read(fd, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        digester_add(&g, chunk, (size_t)n);
        total += n;
    }
    int rc = n < 0 ? error_errno(err, "cannot read %s", path) : 0;
    digester_finish(&g, &d);
    digest_hex(&d, hex);
    if (bytes) *bytes = total;
    free(chunk);
    close(fd);
    return rc;
}
