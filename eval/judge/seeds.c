/* The file appears by link, so that it is whole and the first one wins. */
#include "eval/judge/seeds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/file.h"

enum { SEED_BITS = 53, FILE_MAX = 64 };

static int create(const char *path, Error *err)
{
    uint64_t seed;
    char text[32], temp[4096];
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return error_set(err, ERROR_IO, "no random number for %s: %s", path, strerror(errno));
    int n = snprintf(text, sizeof text, "%" PRIu64 "\n", seed >> (64 - SEED_BITS));
    if ((size_t)snprintf(temp, sizeof temp, "%s.tmp.%ld", path, (long)getpid()) >= sizeof temp)
        return error_set(err, ERROR_LIMIT, "the path %s is too long", path);
    if (file_write_atomic(temp, text, (size_t)n, err)) return -1;
    int failed = chmod(temp, S_IRUSR | S_IWUSR) || (link(temp, path) && errno != EEXIST),
        why = errno;
    unlink(temp);
    if (failed) return error_set(err, ERROR_IO, "cannot write %s: %s", path, strerror(why));
    return file_sync_dir(path, err);
}

static int read_seed(const char *path, const char *text, uint64_t *seed, Error *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || strspn(end, "\n") != strlen(end) || errno || v >> SEED_BITS)
        return error_set(err, ERROR_CORRUPT, "%s holds no seed: expected a number below 2^%d", path,
                         SEED_BITS);
    *seed = v;
    return 0;
}

int seed_file_get(const char *path, uint64_t *seed, Error *err)
{
    Buffer text;
    if (!file_exists(path) && create(path, err)) return -1;
    buffer_init(&text, FILE_MAX);
    int rc = file_read(path, FILE_MAX, &text, err);
    if (!rc) rc = read_seed(path, text.data, seed, err);
    buffer_release(&text);
    return rc;
}

uint64_t seed_derive(uint64_t seed, const char *purpose, const char *text)
{
    Digester d;
    Digest digest;
    uint64_t out = 0;
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, seed);
    digester_init(&d);
    digester_add_field(&d, purpose, strlen(purpose));
    digester_add_field(&d, digits, strlen(digits));
    digester_add_field(&d, text, strlen(text));
    digester_finish(&d, &digest);
    for (int i = 0; i < 8; i++) out = out << 8 | digest.bytes[i];
    return out >> (64 - SEED_BITS);
}
