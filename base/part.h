/* Generated text from template files. A file has parts: a line "//@ NAME", to which a comment may be added,
 * begins one, and the next such line ends it, with an empty line before that. A backslash at the end takes
 * the line break away. In a part @NAME@ stands for a value. */
#ifndef BASE_PART_H
#define BASE_PART_H

#include "base/buffer.h"

enum { PART_VALUE = 4096 }; /* for buffers of values: bytes */

/* Appends a part of an embedded file. values: "rows=%lld;type=%s" for printf, with what each @NAME@ of the
 * part stands for, which has no semicolon. A part or value that is missing ends the program, since it is a
 * mistake in the program. */
void part_put(Buffer *b, const char *file, const char *part);
void part_fill(Buffer *b, const char *file, const char *part, const char *values, ...)
    __attribute__((format(printf, 4, 5)));

#endif
