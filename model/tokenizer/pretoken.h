/* The pre-tokeniser of Qwen2 and Llama-3: their regular expressions, matched by hand. The two
 * differ in how many digits stay together (1 and 3). A third rule is ours, for a small model of one
 * narrow language: a piece is a whole line with its end, so that tokens may span words; on
 * generated kernels answers get about three times shorter than with words. */
#ifndef MODEL_PRETOKEN_H
#define MODEL_PRETOKEN_H

#include <stddef.h>

extern const char *const pretoken_regex_1; /* Qwen2, Qwen2.5, Qwen3 */
extern const char *const pretoken_regex_3; /* Llama-3 */
extern const char *const pretoken_regex_lines;

enum { PRETOKEN_LINES = -1 }; /* in place of max_digits */

/* End of the piece that starts at `at`, at < n, of well-formed UTF-8. */
size_t pretoken_end(const char *s, size_t n, size_t at, int max_digits);

#endif
