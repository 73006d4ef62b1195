/* The headers that a candidate may include, held in memory: CUDA's, those in folders that the user
 * names, CUTLASS's, and a small prelude under the names of common C headers. NVRTC gets their texts
 * instead of a path, so that the process that compiles opens no file. */
#ifndef EVAL_COMPILE_HEADERS_H
#define EVAL_COMPILE_HEADERS_H

#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"

typedef struct Headers Headers;

/* include_dir: CUDA's headers; it is an error when they are missing. folders: absolute paths
 * separated by ':', searched after include_dir. cutlass: the folder of CUTLASS's headers, searched last; none
 * where it is missing. A name or a symbolic link that leads outside of them is not read. */
int headers_open(const char *include_dir, const char *folders, const char *cutlass, Headers **out,
                 Error *err);
void headers_close(Headers *h);

/* All headers that source includes, directly or through others, by the names in the #include lines.
 * Returns their number. Unknown names are left out, and NVRTC refuses them. The arrays are valid
 * until the next call. */
int headers_collect(Headers *h, const char *source, size_t len, const char *const **names,
                    const char *const **texts);

/* 1: the last source included no header but the prelude. */
int headers_none(const Headers *h);
int headers_named_folders(const Headers *h); /* the number of them */
/* "CUTLASS 4.2.0"; "": it is not there. */
const char *headers_cutlass(const Headers *h);
int headers_takes_cutlass(const Headers *h); /* the last source includes it */
/* A digest of all headers that the last source takes from named folders, "" for none. */
const char *headers_taken(const Headers *h);

#endif
