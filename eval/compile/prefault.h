/* The pages that a compilation touches, mapped while a forked child waits for its request: a fork shares
 * them for reading at most, and each would cost the compilation a fault, and often a copy. A verdict
 * takes 7% less time (docs/measurements/evaluator.md). All of it is advice: what goes
 * wrong leaves the faults where they were. */
#ifndef EVAL_COMPILE_PREFAULT_H
#define EVAL_COMPILE_PREFAULT_H

typedef struct Prefault Prefault;

Prefault *prefault_open(void);
void prefault_close(Prefault *p); /* and ends the child that learns */

/* Fork a child that does `work`, and tells which pages it touched. Returns at once. */
void prefault_learn(Prefault *p, void (*work)(void *of), void *of);
/* While such a child is there: wait until it has told, or there is input at `in`. */
void prefault_wait(Prefault *p, int in);

/* In a child: map those pages. */
void prefault_touch(const Prefault *p);

#endif
