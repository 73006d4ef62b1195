/* The parts of a PyTorch archive (.pt2, a ZIP file of torch.export.save) that an import needs. Nothing
 * is unpacked to disk. Counts and sizes are bounded before and while entries are read, so that a small
 * file cannot take much memory. */
#ifndef TASKS_IMPORT_ARCHIVE_H
#define TASKS_IMPORT_ARCHIVE_H

#include "base/buffer.h"
#include "base/error.h"

enum { ARCHIVE_MAX_ENTRIES = 65536, ARCHIVE_MAX_NAME = 512 };
enum { ARCHIVE_MAX_PROGRAM = 64 << 20, ARCHIVE_MAX_NOTES = 8 << 20 }; /* bytes, unpacked */

typedef struct {
    Buffer program; /* the exported program, JSON */
    Buffer notes;   /* what tools/export.py says beside it; len 0: nothing */
} Archive;

int archive_read(const char *path, Archive *out, Error *err);
/* The same of a file's bytes, which must stay until the call returns. `name` is for messages. */
int archive_read_bytes(const void *data, size_t len, const char *name, Archive *out, Error *err);
void archive_release(Archive *a);

#endif
