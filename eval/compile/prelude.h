/* Headers that a candidate gets instead of the system's: of the C library, and <cuda.h>. */
#ifndef EVAL_COMPILE_PRELUDE_H
#define EVAL_COMPILE_PRELUDE_H

const char *prelude_name(int i);            /* the i-th of them; NULL beyond the last */
const char *prelude_text(const char *name); /* NULL: none of them */

/* A header of the C++ library, such as "limits": CCCL's of the same name, in namespace std. */
typedef struct {
    const char *name, *of; /* of: the header that the text includes */
    const char *text;
} PreludeStandard;
/* NULL: it is none of those that have one. */
const PreludeStandard *prelude_standard(const char *name);

#endif
