/* Libraries beside which other candidates have run are as good as those of the baseline, and those of a
 * candidate are no better. */
#ifndef EVAL_JUDGE_LIBRARY_CHECK_H
#define EVAL_JUDGE_LIBRARY_CHECK_H

#include "eval/judge/judgement.h"

typedef struct LibraryCheck LibraryCheck;

/* Load the baseline in the candidate's process of libraries, with the tensors and buffers of its own open
 * run, and run it once, since a library prepares itself in its first run. *out is to be closed in every case,
 * before that run is; NULL: one of both sides has no op lines. Functions return 0; or -1 where the baseline
 * fails there: where others have used the process, the candidate is judged again in one of its own. */
int library_check_open(Judgement *j, const Run *baseline, LibraryCheck **out);
/* The same run on its contents: it is right, and takes no longer than `us`, its time in its own process. The
 * timing lock is held. *there_us: the time; 0 where c is NULL. */
int library_check(Judgement *j, LibraryCheck *c, const Run *baseline, double us, double *there_us);
/* *share: the baseline's time there by its time in its own process, of `n` runs of each in turns, four where
 * they take over a millisecond; 1 where it is no faster. n is even. A library's workspace lies elsewhere
 * there: equal calls of 29 ms differed by 0.6% (k1_70, H200, 2026-11-30), those of k2_61 by 7%. */
int library_share(Judgement *j, LibraryCheck *c, Run *baseline, int n, double *share);
void library_check_close(LibraryCheck *c);

#endif
