/* The headers that a candidate may include, held in memory: those of the CUDA toolkit and a small
 * prelude under the names of the C headers that kernels include out of habit. The compiler gets
 * texts, not a path, so that the process that compiles needs to open no file at all. */
#ifndef EVAL_HEADERS_H
#define EVAL_HEADERS_H

#include <stddef.h>

typedef struct Headers Headers;

Headers *headers_open(const char *include_dir);     /* "" : the prelude only */
void headers_close(Headers *h);

/* All headers that source includes, directly or through others, by the names under which they are
 * included. Unknown names are left to the compiler to refuse. The arrays live until the next call. */
int headers_collect(Headers *h, const char *source, size_t len, const char *const **names, const char *const **texts);

#endif
