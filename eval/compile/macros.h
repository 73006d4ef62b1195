/* Macros that headers use to name other headers ("#include MACRO"): which names one may stand for.
 * No condition is evaluated, so every definition counts whose owner is visible now. */
#ifndef EVAL_COMPILE_MACROS_H
#define EVAL_COMPILE_MACROS_H

#include <stddef.h>

typedef struct Macros Macros;

Macros *macros_open(void);
void macros_close(Macros *m);

/* Keep "define NAME value" (what follows the #) when the value can be a part of a header's name. */
void macros_define(Macros *m, const void *owner, const char *line, size_t len);

typedef int MacroVisible(const void *owner, void *context);
typedef void MacroFound(void *context, const char *header); /* without its <> or "" */

/* All header names that `name` may stand for, a few dozen at most. */
void macros_expand(const Macros *m, const char *name, MacroVisible *visible, MacroFound *found,
                   void *context);

#endif
