/* Replies of the compiler in memory, by key. The oldest go when there are too many, or too many bytes. */
#ifndef EVAL_COMPILE_REPLIES_H
#define EVAL_COMPILE_REPLIES_H

#include <stddef.h>

#include "base/buffer.h"

typedef struct Replies Replies;

Replies *replies_open(int max, size_t max_bytes);
void replies_close(Replies *r); /* NULL is allowed */
void replies_put(Replies *r, const char *key, const void *reply, size_t len);
/* Returns 1 with the reply of a key in *out. */
int replies_find(const Replies *r, const char *key, Buffer *out);

#endif
