/* What an answer's form adds to its verdict. */
#ifndef EVAL_SERVE_ADVICE_H
#define EVAL_SERVE_ADVICE_H

#include "artifacts/record.h"

/* Writes to out what is wrong with the form of a sample without code. */
void advice_without_code(const View *sample, Buffer *out);
/* Sets the message of r, if the verdict blames the plan or the compilation and the sample's answer
 * has another form than was asked for: the verdict's message, then the advice. */
void advice_add(const View *sample, const View *verdict, Record *r);

#endif
