/* The text of kernels in which a thread folds short rows by itself. */
#ifndef GENERATE_ALONE_TEXT_H
#define GENERATE_ALONE_TEXT_H

#include "generate/writer.h"

/* 1: neighbouring rows' results lie side by side along w->along. */
int alone_fits(const Writer *w);
void alone_put(Writer *w);
/* Appends grid and block to a launch line. */
int alone_launch(const Writer *w, Buffer *plan, Error *err);

#endif
