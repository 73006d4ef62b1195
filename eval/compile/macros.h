/* Macros that name headers ("#include MACRO", "#include MACRO(name)"): which header names a use may
 * expand to. No condition is evaluated, so every definition counts whose owner is visible. */
#ifndef EVAL_COMPILE_MACROS_H
#define EVAL_COMPILE_MACROS_H

#include <stddef.h>

typedef struct Macros Macros;

Macros *macros_open(const Macros *outer); /* whose definitions count too; NULL: none */
void macros_close(Macros *m);

/* Keep "define NAME value" or "define NAME(a) value" (the text after the #, with the lines spliced to it)
 * when the value can be a part of a header's name. */
void macros_define(Macros *m, const void *owner, const char *line, size_t len);

typedef int MacroVisible(const void *owner, void *context);
typedef void MacroFound(void *context, const char *header); /* without <> or "" */

/* The bytes of the macro's name at p, with its arguments in brackets; 0: none begins there. */
size_t macros_use_length(const char *p, const char *end);

/* Call found for each header name that `use` may expand to, at most a few dozen. */
void macros_expand(const Macros *m, const char *use, MacroVisible *visible, MacroFound *found,
                   void *context);

#endif
