/* A journal is read once at its start and then only appended to. A POSIX lock keeps out a second
 * writer. */
#include "artifacts/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

/* A payload has at least one byte. After a power loss the tail may read as zeros, and zeros would be
 * empty records with the right CRC. */
enum { MAX_PAYLOAD = 1 << 30, FRAME = 8, LOCK_WAIT_S = 30 };
#define MAX_JOURNAL ((size_t)4 << 30)

struct Journal {
    char *path;
    int fd;
    off_t end;             /* of the last whole record */
    struct Journal *other; /* the list of those that are open */
    double synced;
    int dirty;
};

/* A program that ends before its first record leaves no journal, wherever it ends. */
static Journal *open_journals;
static pid_t owner; /* a forked child leaves them alone */

static void drop_if_empty(const Journal *j)
{
    if (j->fd >= 0 && j->end <= FRAME + DIGEST_BYTES) unlink(j->path);
}

static void drop_empty_at_exit(void)
{
    for (const Journal *j = open_journals; j && owner == getpid(); j = j->other) drop_if_empty(j);
}

static void keep_in_list(Journal *j)
{
    static int registered;
    if (!registered++) atexit(drop_empty_at_exit);
    owner = getpid();
    j->other = open_journals;
    open_journals = j;
}

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Returns the length of the payload at data[at..len), or 0 if the record is torn or damaged. */
static int record_at(const Buffer *b, size_t at, const unsigned char **payload, size_t *n)
{
    const unsigned char *p = (const unsigned char *)b->data + at;
    if (b->len - at < FRAME) return 0;
    size_t claimed = get_u32(p);
    if (claimed == 0 || claimed > MAX_PAYLOAD || claimed > b->len - at - FRAME) return 0;
    if (digest_crc32c(0, p + 4, claimed) != get_u32(p + 4 + claimed)) return 0;
    *payload = p + 4;
    *n = claimed;
    return 1;
}

static int append(Journal *j, const void *payload, size_t len, Error *err)
{
    if (!len || len > MAX_PAYLOAD)
        return error_set(err, ERROR_CORRUPT, "%s: expected a payload of 1 to %d bytes, found %zu",
                         j->path, MAX_PAYLOAD, len);
    unsigned char *frame = memory_alloc(len + FRAME);
    put_u32(frame, (uint32_t)len);
    memcpy(frame + 4, payload, len);
    put_u32(frame + 4 + len, digest_crc32c(0, payload, len));
    int rc = file_write_all(j->fd, frame, len + FRAME, j->path, err);
    free(frame);
    if (!rc) {
        j->end += (off_t)(len + FRAME);
        j->dirty = 1;
    } else if (ftruncate(j->fd, j->end)) {
        return error_errno(err, "cannot cut the torn record off %s", j->path);
    }
    return rc;
}

static int sync_now(Journal *j, Error *err)
{
    if (j->dirty && fdatasync(j->fd)) return error_errno(err, "cannot fsync %s", j->path);
    j->dirty = 0;
    j->synced = clock_seconds();
    return 0;
}

/* Takes the lock of the only writer. POSIX record locks end with the process, and a forked child
 * does not hold them. Waits up to LOCK_WAIT_S for a stage that outlived a killed run. */
static int lock(Journal *j, Error *err)
{
    double start = clock_seconds();
    for (int said = 0;; said = 1) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (!fcntl(j->fd, F_SETLK, &l)) return 0;
        if (errno != EACCES && errno != EAGAIN) return error_errno(err, "cannot lock %s", j->path);
        if (fcntl(j->fd, F_GETLK, &l)) l.l_pid = 0;
        if (stop_requested() || clock_seconds() - start > LOCK_WAIT_S)
            return error_set(err, ERROR_CORRUPT, "%s is being written by process %ld", j->path,
                             (long)l.l_pid);
        if (!said)
            log_info("%s: waiting for process %ld, which is writing it", j->path, (long)l.l_pid);
        clock_sleep(0.1);
    }
}

/* Opens and locks. Repeats this if the previous holder removed the file in the meantime. */
static int open_locked(Journal *j, Error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat held, named;
        j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (j->fd < 0) return error_errno(err, "cannot open %s", j->path);
        if (lock(j, err)) return -1;
        if (!fstat(j->fd, &held) && !stat(j->path, &named) && held.st_ino == named.st_ino &&
            held.st_dev == named.st_dev)
            return 0;
        close(j->fd);
        j->fd = -1;
    }
    return error_set(err, ERROR_CORRUPT,
                     "%s is removed and made again all the time by another process", j->path);
}

/* Reads through the locked descriptor: closing another one of the same file would end the lock. */
static int read_all(Journal *j, Buffer *b, Error *err)
{
    char chunk[65536];
    for (;;) {
        ssize_t n = read(j->fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_errno(err, "cannot read %s", j->path);
        if (n == 0) return 0;
        if (buffer_append(b, chunk, (size_t)n))
            return error_set(err, ERROR_LIMIT, "%s: expected at most %zu bytes, found more",
                             j->path, b->max);
    }
}

static int start_over(Journal *j, const Digest *digest, Error *err)
{
    j->end = 0;
    if (ftruncate(j->fd, 0)) return error_errno(err, "cannot empty %s", j->path);
    if (append(j, digest->bytes, sizeof digest->bytes, err) || sync_now(j, err)) return -1;
    return file_sync_dir(j->path, err);
}

/* Passes each record to the caller, then cuts the file after the last sound one. */
static int replay_all(Journal *j, const Buffer *b, const Digest *digest, JournalReplay *replay,
                      void *ctx, Error *err)
{
    const unsigned char *payload;
    size_t n, at = 0;
    if (!record_at(b, 0, &payload, &n)) {
        if (b->len) log_info("%s: damaged at its first record; starting over", j->path);
        return start_over(j, digest, err);
    }
    if (n != sizeof digest->bytes || memcmp(payload, digest->bytes, n)) {
        log_info("%s: begun with another configuration or other inputs; starting over", j->path);
        return start_over(j, digest, err);
    }
    long records = 0;
    for (at = n + FRAME; at < b->len && record_at(b, at, &payload, &n); at += n + FRAME) {
        if (replay && replay(ctx, payload, n, err))
            return error_prefix(err, "%s, record %ld", j->path, records);
        records++;
    }
    j->end = (off_t)at;
    if (at < b->len) {
        log_info("%s: cut a torn tail of %zu bytes after record %ld", j->path, b->len - at,
                 records);
        if (ftruncate(j->fd, j->end)) return error_errno(err, "cannot cut %s", j->path);
    }
    return 0;
}

static void free_journal(Journal *j)
{
    for (Journal **at = &open_journals; *at; at = &(*at)->other)
        if (*at == j) {
            *at = j->other;
            break;
        }
    if (j->fd >= 0) close(j->fd);
    free(j->path);
    free(j);
}

int journal_open(const char *target, const ArtifactSpec *spec, JournalReplay *replay, void *ctx,
                 Journal **out, Error *err)
{
    Journal *j = memory_alloc(sizeof *j);
    j->path = memory_printf("%s.journal", target);
    j->fd = -1;
    j->synced = clock_seconds();
    Buffer b;
    Digest digest;
    buffer_init(&b, MAX_JOURNAL);
    artifact_spec_digest(spec, &digest);
    int rc =
        open_locked(j, err) || read_all(j, &b, err) || replay_all(j, &b, &digest, replay, ctx, err);
    buffer_release(&b);
    if (rc) {
        free_journal(j);
        return -1;
    }
    keep_in_list(j);
    *out = j;
    return 0;
}

int journal_append(Journal *j, const void *payload, size_t len, Error *err)
{
    if (append(j, payload, len, err)) return -1;
    return clock_seconds() - j->synced >= 1.0 ? sync_now(j, err) : 0;
}

int journal_close(Journal *j, Error *err)
{
    int rc = sync_now(j, err);
    drop_if_empty(j);
    free_journal(j);
    return rc;
}

int journal_remove(Journal *j, Error *err)
{
    int rc = unlink(j->path) && errno != ENOENT ? error_errno(err, "cannot remove %s", j->path) : 0;
    free_journal(j);
    return rc;
}
