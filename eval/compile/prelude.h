/* Headers that a candidate gets instead of the system's: of the C library, and <cuda.h>. */
#ifndef EVAL_COMPILE_PRELUDE_H
#define EVAL_COMPILE_PRELUDE_H

const char *prelude_name(int i);            /* the i-th of them; NULL beyond the last */
const char *prelude_text(const char *name); /* NULL: none of them */

#endif
