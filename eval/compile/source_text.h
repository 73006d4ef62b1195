/* The text of a candidate as the compiler gets it. */
#ifndef EVAL_COMPILE_SOURCE_TEXT_H
#define EVAL_COMPILE_SOURCE_TEXT_H

#include <stddef.h>

/* Blanks #line directives, so that each line keeps its number, and replaces bytes 0xFF, which end
 * NVRTC with a crash, by '?'. Lengths and newlines stay. */
void source_text_prepare(char *text, size_t len);

#endif
