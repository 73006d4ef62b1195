/* Files. A file that others read is written to a temporary name beside it, fsynced, renamed,
 * and its directory fsynced: a reader sees the old file or the new one, never a part of one. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Reads a whole file of at most max bytes into out (cleared first; out->max is raised to max). The
 * path "-" is standard input. */
int file_read(const char *path, size_t max, Buffer *out, Error *err);
/* Reads a source file. A UTF-8 byte-order mark becomes blanks, since NVRTC refuses it. */
int file_read_source(const char *path, size_t max, Buffer *out, Error *err);
const char *file_label(const char *path); /* for messages: the path, "standard input" for "-" */
int file_write_atomic(const char *path, const void *data, size_t len, Error *err);
int file_mkdirs(const char *path, Error *err); /* like mkdir -p */
int file_exists(const char *path);
int file_touch(const char *path, Error *err);       /* mtime = now */
int file_remove_tree(const char *path, Error *err); /* absent is no error */

/* The three steps of an atomic write, for writers that stream. `temp` receives the name
 * "<path>.tmp.<pid>"; file_commit fsyncs fd, closes it, renames and fsyncs the directory;
 * file_abandon closes and unlinks. Both consume fd. */
int file_begin(const char *path, char *temp, size_t temp_size, Error *err); /* fd or -1 */
int file_commit(int fd, const char *temp, const char *path, Error *err);
void file_abandon(int fd, const char *temp);

int file_write_all(int fd, const void *data, size_t len, const char *name, Error *err);
int file_sync_dir(const char *path_inside, Error *err); /* the directory that holds path_inside */

#endif
