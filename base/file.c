/* Whole files, atomic writes and folders. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_label(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

/* Reads the beginning of a pipe. One that nobody opens for writing is waited for only so long. */
static ssize_t read_first(int fd, char *out, size_t size)
{
    enum { WRITER_MS = 1000, STEP_MS = 10 };
    ssize_t n = 0;
    for (int ms = 0; ms <= WRITER_MS && (n = read(fd, out, size)) == 0; ms += STEP_MS)
        poll(NULL, 0, STEP_MS);
    if (n < 0 && errno == EAGAIN) { /* it has a writer, who has written nothing yet */
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        n = read(fd, out, size);
    }
    if (n == 0) errno = ENODATA;
    return n ? n : -1;
}

/* Opens a file or a pipe, without waiting for a pipe's writer. */
static int open_input(const char *path, int *is_pipe)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *is_pipe = fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode);
    if (fd >= 0 && !*is_pipe) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int file_read(const char *path, size_t max, Buffer *out, Error *err)
{
    buffer_clear(out);
    if (out->max < max) out->max = max;
    int is_stdin = !strcmp(path, "-"), is_pipe = 0,
        fd = is_stdin ? STDIN_FILENO : open_input(path, &is_pipe);
    const char *name = file_label(path);
    if (fd < 0) return error_errno(err, "cannot open %s", name);
    char chunk[65536];
    int rc = 0;
    for (;;) {
        ssize_t n = is_pipe ? read_first(fd, chunk, sizeof chunk) : read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) rc = error_errno(err, "cannot read %s", name);
        if (n <= 0) break;
        if (is_pipe) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        is_pipe = 0;
        if (out->len + (size_t)n > max || buffer_append(out, chunk, (size_t)n)) {
            rc = error_set(err, ERROR_LIMIT, "%s: expected at most %zu bytes, found more", name,
                           max);
            break;
        }
    }
    if (!is_stdin) close(fd);
    return rc;
}

int file_write_all(int fd, const void *data, size_t len, const char *name, Error *err)
{
    const char *p = data;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return error_errno(err, "cannot write %s", name);
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_sync_dir(const char *path, Error *err)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof dir)
        return error_set(err, ERROR_LIMIT, "path of more than %zu bytes: %s", sizeof dir, path);
    if (!slash)
        strcpy(dir, ".");
    else if (n == 0)
        strcpy(dir, "/");
    else {
        memcpy(dir, path, n);
        dir[n] = 0;
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "cannot open directory %s", dir);
    int rc = fsync(fd) ? error_errno(err, "cannot fsync directory %s", dir) : 0;
    close(fd);
    return rc;
}

/* The rename at the end must not replace a device, or the name of an open file such as /dev/stdout,
 * even where that leads to a regular file. */
static int is_no_output(const char *path)
{
    static const char open_files[] = "/proc/";
    char to[sizeof open_files - 1];
    struct stat was;
    if (!stat(path, &was) && !S_ISREG(was.st_mode)) return 1;
    return readlink(path, to, sizeof to) == sizeof to && !memcmp(to, open_files, sizeof to);
}

int file_begin(const char *path, char *temp, size_t temp_size, Error *err)
{
    int n = snprintf(temp, temp_size, "%s.tmp.%ld", path, (long)getpid());
    if (is_no_output(path))
        return error_set(err, ERROR_USAGE, "%s is there and is no regular file", path);
    if (n < 0 || (size_t)n >= temp_size)
        return error_set(err, ERROR_LIMIT, "path too long: %s", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return error_errno(err, "cannot create %s", temp);
    return fd;
}

int file_commit(int fd, const char *temp, const char *path, Error *err)
{
    if (fsync(fd)) {
        error_errno(err, "cannot fsync %s", temp);
        file_abandon(fd, temp);
        return -1;
    }
    if (close(fd)) {
        error_errno(err, "cannot close %s", temp);
        unlink(temp);
        return -1;
    }
    if (rename(temp, path)) {
        error_errno(err, "cannot rename %s to %s", temp, path);
        unlink(temp);
        return -1;
    }
    return file_sync_dir(path, err);
}

void file_abandon(int fd, const char *temp)
{
    if (fd >= 0) close(fd);
    unlink(temp);
}

int file_read_source(const char *path, size_t max, Buffer *out, Error *err)
{
    if (file_read(path, max, out, err)) return -1;
    if (out->len >= 3 && !memcmp(out->data, "\xef\xbb\xbf", 3)) memset(out->data, ' ', 3);
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, Error *err)
{
    char temp[4096];
    int fd = file_begin(path, temp, sizeof temp, err);
    if (fd < 0) return -1;
    if (file_write_all(fd, data, len, path, err)) {
        file_abandon(fd, temp);
        return -1;
    }
    return file_commit(fd, temp, path, err);
}

int file_mkdirs(const char *path, Error *err)
{
    char p[4096];
    size_t n = strlen(path);
    if (n >= sizeof p) return error_set(err, ERROR_LIMIT, "path too long: %s", path);
    memcpy(p, path, n + 1);
    for (char *s = p + 1;; s++) {
        if (*s && *s != '/') continue;
        char c = *s;
        *s = 0;
        if (mkdir(p, 0755) && errno != EEXIST)
            return error_errno(err, "cannot create directory %s", p);
        *s = c;
        if (!c) return 0;
    }
}

int file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int file_touch(const char *path, Error *err)
{
    if (utimensat(AT_FDCWD, path, NULL, 0)) return error_errno(err, "cannot touch %s", path);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

int file_remove_tree(const char *path, Error *err)
{
    if (!file_exists(path)) return 0;
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS))
        return error_errno(err, "cannot remove %s", path);
    return 0;
}
