/* The heap of one compilation. NVRTC orders some of its work by addresses, so that the PTX of a large kernel
 * depends on where its memory lies. A child therefore begins with an empty heap at a fixed address, whatever
 * the server did before. quern-compile defines malloc and its like by these functions; before heap_begin, and
 * for what the range has no room for, they are the C library's. */
#ifndef EVAL_COMPILE_HEAP_H
#define EVAL_COMPILE_HEAP_H

#include <stddef.h>

enum { HEAP_ALIGN = 16 };

/* Map the range, before children are forked. Where it cannot be mapped, the heap stays the C library's. */
void heap_map(void);
size_t heap_room(void); /* bytes of the range; 0: it is not mapped */
/* From now on, in a child. */
void heap_begin(void);

void *heap_malloc(size_t bytes);
void *heap_calloc(size_t n, size_t bytes);
void *heap_realloc(void *p, size_t bytes);
void *heap_aligned(size_t alignment, size_t bytes); /* a power of two */
void heap_free(void *p);

#endif
