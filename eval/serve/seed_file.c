/* The file appears by link, so that it is whole and the first one wins. */
#include "eval/serve/seed_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

enum { MAX_BYTES = 64 };

static int create(const char *path, Error *err)
{
    uint64_t seed;
    char text[32], temp[4096];
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return error_set(err, ERROR_IO, "no random number for %s: %s", path, strerror(errno));
    int n = snprintf(text, sizeof text, "%" PRIu64 "\n", seed >> (64 - SEED_BITS));
    if ((size_t)snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid()) >= sizeof temp)
        return error_set(err, ERROR_LIMIT, "the path %s is too long", path);
    if (file_write_atomic(temp, text, (size_t)n, err)) return -1;
    int failed = link(temp, path) && errno != EEXIST, why = errno;
    unlink(temp);
    if (failed) return error_set(err, ERROR_IO, "cannot write %s: %s", path, strerror(why));
    return file_sync_dir(path, err);
}

int seed_file_get(const char *path, uint64_t *seed, Error *err)
{
    Buffer text;
    char *end;
    if (!file_exists(path) && create(path, err)) return -1;
    buffer_init(&text, MAX_BYTES);
    int rc = file_read(path, MAX_BYTES, &text, err);
    if (!rc) {
        errno = 0;
        *seed = strtoull(text.data, &end, 10);
        if (end == text.data || *text.data == '-' || strspn(end, "\n") != strlen(end) || errno ||
            *seed >> 53)
            rc = error_set(err, ERROR_CORRUPT, "%s holds no seed: a number below 2^53 expected",
                           path);
    }
    buffer_release(&text);
    return rc;
}
