/* Libraries beside which other candidates have run are as good as those of the baseline. */
#ifndef EVAL_JUDGE_LIBRARY_CHECK_H
#define EVAL_JUDGE_LIBRARY_CHECK_H

#include "eval/judge/judgement.h"

typedef struct LibraryCheck LibraryCheck;

/* Where others have used the candidate's process of libraries: load the baseline there, with the tensors
 * and buffers of its own open run, and run it once, since a library prepares itself in its first run. *out
 * is to be closed in every case, before that run is; NULL: nothing is to be checked. Functions return 0;
 * or -1 where the baseline fails there: the candidate is judged again in a process of its own then. */
int library_check_open(Judgement *j, const Run *baseline, LibraryCheck **out);
/* The same run on its contents: it is right, and takes no longer than `us`, its time in its own process. The
 * timing lock is held. */
int library_check(Judgement *j, LibraryCheck *c, const Run *baseline, double us);
void library_check_close(LibraryCheck *c);

#endif
