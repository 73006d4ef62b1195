/* The parts of Unicode that the tokenizer needs: decoding, general categories, and NFC. Character data
 * comes from utf8proc (Unicode 14 in Debian 12) and is updated to Unicode 16. */
#ifndef MODEL_UNICODE_H
#define MODEL_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define UNICODE_INVALID UINT32_MAX

/* Decode the code point at s, which has n >= 1 bytes, and return its length. If it is ill-formed,
 * *code is UNICODE_INVALID, and the length covers the maximal part that a decoder replaces by one
 * U+FFFD. */
size_t unicode_decode(const char *s, size_t n, uint32_t *code);

int unicode_category(uint32_t code); /* 0 to 29 */
/* Returns a bit for each category of that name (Lu) or first letter (L); 0: there is none. */
uint32_t unicode_categories(const char *name, size_t n);
int unicode_is_space(uint32_t code); /* \s */

/* Make the text well-formed. *text and *len stay as they are, or become a copy in `copy` (cleared
 * first) with U+FFFD in place of ill-formed bytes. */
int unicode_repair(const char **text, size_t *len, Buffer *copy, Error *err);

/* The same for NFC of well-formed text. Text without a code point from U+0300 on is NFC already. */
int unicode_nfc(const char **text, size_t *len, Buffer *copy, Error *err);

#endif
