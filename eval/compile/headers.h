/* The headers that a candidate may include, held in memory: those of the CUDA toolkit, those of
 * folders that the user names, and a small prelude under the names of the C headers that kernels
 * include out of habit. The compiler gets texts, not a path, so that the process that compiles
 * needs to open no file at all. */
#ifndef EVAL_COMPILE_HEADERS_H
#define EVAL_COMPILE_HEADERS_H

#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"

typedef struct Headers Headers;

/* include_dir: CUDA's; it is an error when its headers are not there. folders: whole paths with ':'
 * between, searched after it; what lies outside them is not read, whatever a name or a symbolic
 * link says. */
int headers_open(const char *include_dir, const char *folders, Headers **out, Error *err);
void headers_close(Headers *h);

/* All headers that source includes, directly or through others, by the names under which they are
 * included. Unknown names are left to the compiler to refuse. The arrays live until the next call.
 */
int headers_collect(Headers *h, const char *source, size_t len, const char *const **names,
                    const char *const **texts);

/* That source included none but what every candidate has. */
int headers_none(const Headers *h);
int headers_named_folders(const Headers *h); /* how many */
/* Of the last source: a digest of all that it gets from named folders, "" when that is nothing. */
const char *headers_taken(const Headers *h);

#endif
