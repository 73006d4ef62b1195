/* Reads a file once, with one buffer. */
#include "base/file_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

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
