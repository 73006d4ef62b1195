/* The cage of one compilation: CPU, memory and output limits, and a system-call filter under which
 * no file can be opened or looked up, no socket made, no process started and nothing signalled. */
#ifndef EVAL_COMPILE_SANDBOX_H
#define EVAL_COMPILE_SANDBOX_H

#include <stddef.h>

#include "base/error.h"

typedef struct Sandbox Sandbox;

int sandbox_open(Sandbox **out, Error *err); /* builds the filter, once */
void sandbox_close(Sandbox *s);

/* In a child just forked: keep only `keep_fd`, then lock the door. There is no way back.
 * memory_bytes: beyond what the child has mapped now. */
int sandbox_enter(Sandbox *s, int keep_fd, int cpu_s, size_t memory_bytes, Error *err);

#endif
