/* The SHA-256 of a file's content. */
#ifndef BASE_FILE_DIGEST_H
#define BASE_FILE_DIGEST_H

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

/* The file is read in pieces, since a checkpoint's may be larger than memory. bytes receives its
 * length; NULL: not needed. */
int file_digest(const char *path, char hex[DIGEST_HEX], int64_t *bytes, Error *err);

#endif
