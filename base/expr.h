/* C's integer expressions over named values, as tasks and launch plans write them:
 *   literals (decimal, 0x..), names, ( ), unary - + ! ~, * / % + - << >> < <= > >= == != & ^ | &&
 * || ?: and the calls ceil_div(a,b), min(a,b), max(a,b), log2(a) (floor). Arithmetic is int64 and
 * checked: overflow, division by zero, a shift outside 0..62 and an unknown name are errors that
 * name the column. Nesting is limited to 64, text to 4096 bytes. */
#ifndef BASE_EXPR_H
#define BASE_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Value of a name, or -1 if there is none by that name. name is not NUL-terminated. */
typedef int ExprLookup(void *ctx, const char *name, size_t len, int64_t *value);

/* Evaluate the whole of text[0..len). Trailing text is an error. */
int expr_eval(const char *text, size_t len, ExprLookup *lookup, void *ctx, int64_t *value,
              Error *err);

#endif
