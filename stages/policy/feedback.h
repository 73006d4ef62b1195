/* What a verdict says to the writer of the kernel: for the prompt of the next turn. */
#ifndef STAGES_POLICY_FEEDBACK_H
#define STAGES_POLICY_FEEDBACK_H

#include "base/buffer.h"
#include "base/error.h"
#include "stages/data/samples.h"

/* Appends the verdict of a judged sample. Of a wrong kernel: the verdict's sentence with the line of
 * the source that it is about. Of a correct one: its score and the three counters that cost most.
 * full: in English; else in a few words, for the small model. A long message, such as a compiler's,
 * is cut to its first lines. The text may quote the candidate, so it is not safe in a prompt as it
 * stands: prompt_write_again makes it so. */
int feedback_write(const Sample *s, int full, Buffer *out, Error *err);

/* Appends the first lines of a message, at most `lines` and `bytes`, and how many more there were.
 * Control characters other than line breaks become blanks. */
void feedback_trim(const char *message, int lines, size_t bytes, Buffer *out);

#endif
