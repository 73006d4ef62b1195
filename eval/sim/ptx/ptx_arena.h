/* Memory of one PTX module: everything allocated from an arena is freed together. */
#ifndef EVAL_SIM_PTX_PTX_ARENA_H
#define EVAL_SIM_PTX_PTX_ARENA_H

#include <stddef.h>

typedef struct PtxArena PtxArena;

PtxArena *ptx_arena_new(void);
void *ptx_arena_alloc(PtxArena *a, size_t bytes);             /* zeroed, aligned to 16 bytes */
char *ptx_arena_text(PtxArena *a, const char *s, size_t len); /* a copy with a final 0 */
void ptx_arena_free(PtxArena *a);                             /* NULL is allowed */

/* Appends a zeroed element to an array on the heap (not in an arena), growing it as needed. Returns
 * the array, which may have moved. */
void *ptx_push(void *array, int *n, int *cap, size_t size);

#endif
