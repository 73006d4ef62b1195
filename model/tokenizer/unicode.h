/* What the tokenizer needs of Unicode: decoding, the three classes of the pre-tokeniser's
 * expression, NFC. Character data comes from utf8proc (Unicode 14 in Debian 12) and is brought up
 * to Unicode 16. */
#ifndef MODEL_UNICODE_H
#define MODEL_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define UNICODE_INVALID UINT32_MAX

/* Length of the code point at s (n >= 1 bytes are there). Ill-formed: *code = UNICODE_INVALID and
 * the length of its maximal part, of which a decoder makes one U+FFFD. */
size_t unicode_decode(const char *s, size_t n, uint32_t *code);

typedef enum { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE } UnicodeClass;
UnicodeClass unicode_class(uint32_t code); /* \p{L}, \p{N}, \s */

/* Well-formed text: *text and *len are left as they are, or replaced by a copy in `copy` (cleared
 * first) where ill-formed bytes became U+FFFD. */
int unicode_repair(const char **text, size_t *len, Buffer *copy, Error *err);

/* The same for NFC, of well-formed text. Without a code point from U+0300 on it is NFC already. */
int unicode_nfc(const char **text, size_t *len, Buffer *copy, Error *err);

#endif
