/* Entries are files DIR/ab/cdef... named by the digest of their key. The first line of an entry is a
 * digest of key and content, so that a damaged entry is a miss. */
#include "base/cache.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

enum { TRIM_EVERY = 200, MAX_ENTRIES = 1 << 20 };

struct Cache {
    char *dir;
    size_t max_bytes;
    int writes;  /* since the last trim */
    int refused; /* a failed write was reported */
};

Cache *cache_open(const char *dir, size_t max_bytes)
{
    Cache *c = memory_alloc(sizeof *c);
    c->dir = memory_strdup(dir);
    c->max_bytes = max_bytes;
    return c;
}

void cache_close(Cache *c)
{
    free(c->dir);
    free(c);
}

static void entry_path(const Cache *c, const char *key, char *out, size_t size)
{
    snprintf(out, size, "%.3800s/%.2s/%s", c->dir, key, key + 2);
}

/* The first line of an entry. It covers the key too, so that an entry under a wrong name is a miss. */
static void seal(const char *key, const void *data, size_t len, char hex[DIGEST_HEX])
{
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, key, strlen(key));
    digester_add_field(&d, data, len);
    digester_finish(&d, &digest);
    digest_hex(&digest, hex);
}

int cache_get(Cache *c, const char key[DIGEST_HEX], size_t max, Buffer *out)
{
    char path[4096], hex[DIGEST_HEX];
    entry_path(c, key, path, sizeof path);
    if (!file_exists(path) || file_read(path, max + DIGEST_HEX, out, NULL) || out->len < DIGEST_HEX)
        return 0;
    seal(key, out->data + DIGEST_HEX, out->len - DIGEST_HEX, hex);
    if (memcmp(hex, out->data, DIGEST_HEX - 1)) return 0;
    utimensat(AT_FDCWD, path, NULL, 0); /* the newest time is trimmed last */
    out->len -= DIGEST_HEX;
    memmove(out->data, out->data + DIGEST_HEX, out->len + 1);
    return 1;
}

typedef struct {
    char *path;
    size_t bytes;
    struct timespec used;
} Entry;

/* nftw has no context argument; a cache belongs to one thread. */
static _Thread_local struct {
    Entry *entries;
    size_t n, bytes;
} walk;

static int is_hex(const char *name, size_t n)
{
    return strspn(name, "0123456789abcdef") == n;
}

/* Is this the name of an entry, or of the temporary file of one? */
static int is_entry(const char *name)
{
    size_t n = DIGEST_HEX - 3;
    return is_hex(name, n) && (!name[n] || !strncmp(name + n, ".tmp.", 5));
}

/* Counts entries only. Other files in the folder are not the cache's and stay. */
static int walk_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    const char *name = path + ftw->base;
    if (flag == FTW_D && ftw->level > 0 && (ftw->level > 1 || !is_hex(name, 2) || name[2]))
        return FTW_SKIP_SUBTREE;
    if (flag != FTW_F || walk.n == MAX_ENTRIES || ftw->level != 2 || !is_entry(name))
        return FTW_CONTINUE;
    walk.entries = memory_grow(walk.entries, walk.n + 1, sizeof *walk.entries);
    walk.entries[walk.n++] = (Entry){memory_strdup(path), (size_t)st->st_size, st->st_mtim};
    walk.bytes += (size_t)st->st_size;
    return FTW_CONTINUE;
}

static int compare_use(const void *a, const void *b)
{
    const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* When the cache is over its bound, removes the least recently used entries until it is at four
 * fifths of the bound. */
static void trim(Cache *c)
{
    walk.entries = NULL;
    walk.n = walk.bytes = 0;
    nftw(c->dir, walk_one, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (walk.bytes > c->max_bytes) {
        qsort(walk.entries, walk.n, sizeof *walk.entries, compare_use);
        for (size_t i = 0; i < walk.n && walk.bytes > c->max_bytes / 5 * 4; i++) {
            unlink(walk.entries[i].path);
            walk.bytes -= walk.entries[i].bytes;
        }
    }
    for (size_t i = 0; i < walk.n; i++) free(walk.entries[i].path);
    free(walk.entries);
}

/* There is no fsync: the digest finds a torn file, and a lost entry costs one compilation. */
static int write_entry(const char *path, const char *hex, const void *data, size_t len, Error *err)
{
    char temp[4200], dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    if (file_mkdirs(dir, err)) return -1;
    int fd = file_begin(path, temp, sizeof temp, err);
    if (fd < 0) return -1;
    if (file_write_all(fd, hex, DIGEST_HEX - 1, temp, err) ||
        file_write_all(fd, "\n", 1, temp, err) || file_write_all(fd, data, len, temp, err)) {
        file_abandon(fd, temp);
        return -1;
    }
    if (close(fd) || rename(temp, path)) {
        unlink(temp);
        return error_errno(err, "cannot write %s", path);
    }
    return 0;
}

void cache_put(Cache *c, const char key[DIGEST_HEX], const void *data, size_t len)
{
    char path[4096], hex[DIGEST_HEX];
    Error err;
    entry_path(c, key, path, sizeof path);
    seal(key, data, len, hex);
    if (write_entry(path, hex, data, len, &err)) {
        if (!c->refused++) log_warn("the compile cache is not written: %s", err.text);
        return;
    }
    if (c->writes++ % TRIM_EVERY == 0) trim(c);
}

int cache_folder(char *out, size_t size)
{
    const char *cache = getenv("QUERN_CACHE"), *home = getenv("HOME");
    int n = cache && *cache ? snprintf(out, size, "%s", cache)
            : home && *home ? snprintf(out, size, "%s/.cache/quern", home)
                            : -1;
    return n > 0 && (size_t)n < size ? 0 : -1;
}
