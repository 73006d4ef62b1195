/* The pre-tokenizers of Qwen2 and Llama-3: their regular expressions, matched by hand. They differ
 * in the number of digits per piece (1 and 3). A third rule, for a small model of one narrow
 * language, takes whole lines with their ends as pieces, so that tokens may span words. It makes
 * generated kernels about three times shorter in tokens. */
#ifndef MODEL_PRETOKEN_H
#define MODEL_PRETOKEN_H

#include <stddef.h>

extern const char *const pretoken_regex_1; /* Qwen2, Qwen2.5, Qwen3 */
extern const char *const pretoken_regex_3; /* Llama-3 */
extern const char *const pretoken_regex_lines;

enum { PRETOKEN_LINES = -1 }; /* in place of max_digits */

/* Returns the end of the piece that starts at `at` < n, in well-formed UTF-8. */
size_t pretoken_end(const char *s, size_t n, size_t at, int max_digits);

#endif
