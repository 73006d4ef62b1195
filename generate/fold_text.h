/* The folds and scans of a kernel as text: what a thread adds to, and how threads join theirs. */
#ifndef GENERATE_FOLD_TEXT_H
#define GENERATE_FOLD_TEXT_H

#include "generate/writer.h"

/* The expression of a and b that joins them, of a sum, a largest, a smallest one or a product, and the number
 * that changes none. */
const char *fold_expression(Fold f);
const char *fold_start(Fold f);
/* Doubles of a thread's state, of the largest fold. */
int fold_words(const Writer *w);
/* The text for one element of a fold. batch: it is the v-th of the u-th vector; else the v-th one. */
void fold_put_element(Writer *w, int step, int batch, const char *indent);
/* Before and behind a loop over n vectors: of folds that take several elements at once. */
void fold_put_values(Writer *w, const Pass *p, int n, const char *indent);
void fold_put_taken(Writer *w, const Pass *p, int n, const char *indent);
/* The fold of the same elements whose state has this one's result; itself where there is none. */
int fold_state(const Writer *w, int step);
/* All folds of a level, those over the same axes in one pass. */
void fold_put_level(Writer *w, int level);
/* A looped fold: of V elements into `to`, or of one into the step's variable where `to` is NULL. */
void fold_put_loop(Writer *w, int step, const char *to, const char *indent);
/* The pass over a row that stores results, which need a scan of it. */
void scan_put(Writer *w);

/* Where a loop over columns ends: at a number, written to `number`, where a thread folds them by itself, also
 * where numbers are parameters; else at a parameter. */
const char *fold_end(Writer *w, unsigned columns, char number[64]);

/* Rows of few columns, whose number is known: each thread folds several neighbouring rows by itself. What
 * windows of these rows share is loaded once. 1: neighbouring rows' results lie side by side along
 * w->along. */
int alone_fits(const Writer *w);
void alone_put(Writer *w);
/* Appends grid and block to a launch line. */
int alone_launch(const Writer *w, Buffer *plan, Error *err);

/* Rows of few columns that lie apart, as windows of a pool over a tensor with channels last, whose results
 * lie along another axis. A block folds a tile of them, a warp 32 neighbours at a time, and stores it from
 * shared memory, 32 neighbouring results at a time. */
enum { TURNED_WARPS = 8, TURNED_SIDE = 32 };
/* 1: the kernel is of this kind, w->strip being known. */
int turned_fits(const Writer *w);
void turned_put(Writer *w);
int turned_launch(const Writer *w, Buffer *plan, Error *err);

#endif
