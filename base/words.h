/* Words of program text: C's letters, digits and '_', in ASCII. A name is a word that begins with no digit.
 * A text is from p up to end; end NULL: up to its NUL. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stddef.h>
#include <string.h>

static inline int word_begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline int word_has(char c)
{
    return word_begins_name(c) || (c >= '0' && c <= '9');
}

/* The bytes of the word, or of the name, at p; 0: none begins there. */
size_t word_length(const char *p, const char *end);
size_t word_name_length(const char *p, const char *end);
/* The bytes of the word at p, else 1: the step to what follows. */
size_t word_step(const char *p, const char *end);
/* The first word at or behind p, with its bytes in *n; NULL: there is none. */
const char *word_next(const char *p, const char *end, size_t *n);

/* The n bytes at p are `word`. */
static inline int word_is(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(p, word, n);
}

/* The whole text is one name of fewer than `size` bytes. */
int word_is_name(const char *text, size_t size);
/* The place of a word among "one|two|three"; -1: it is none of them. The word at a place, of *n bytes. */
int word_choice(const char *choices, const char *word);
const char *word_chosen(const char *choices, int place, size_t *n);
/* The text has `word` as a word of its own. */
int word_in(const char *text, const char *word);

#endif
