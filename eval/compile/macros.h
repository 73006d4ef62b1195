/* Macros that name headers ("#include MACRO"): which header names a macro may expand to. No
 * condition is evaluated, so every definition counts whose owner, a header, is visible. */
#ifndef EVAL_COMPILE_MACROS_H
#define EVAL_COMPILE_MACROS_H

#include <stddef.h>

typedef struct Macros Macros;

Macros *macros_open(void);
void macros_close(Macros *m);

/* Keep "define NAME value" (the text after the #) when the value can be a part of a header's name.
 */
void macros_define(Macros *m, const void *owner, const char *line, size_t len);

typedef int MacroVisible(const void *owner, void *context);
typedef void MacroFound(void *context, const char *header); /* without <> or "" */

/* Call found for each header name that `name` may expand to, at most a few dozen. */
void macros_expand(const Macros *m, const char *name, MacroVisible *visible, MacroFound *found,
                   void *context);

#endif
