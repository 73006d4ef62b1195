/* The sandbox of one compilation: limits of CPU time, memory and output, and a system-call filter
 * that allows no file to be opened or looked up, no socket, no new process and no signal to another
 * one. */
#ifndef EVAL_COMPILE_SANDBOX_H
#define EVAL_COMPILE_SANDBOX_H

#include <stddef.h>

#include "base/error.h"

typedef struct Sandbox Sandbox;

int sandbox_open(Sandbox **out, Error *err); /* builds the filter for all children */
void sandbox_close(Sandbox *s);

/* Enter the sandbox in a child just forked, for the rest of its life. keep_fd (at least 3) stays
 * open; 0 to 2 become /dev/null and all others are closed. memory_bytes: beyond the child's present
 * mappings. */
int sandbox_enter(Sandbox *s, int keep_fd, int cpu_s, size_t memory_bytes, Error *err);

#endif
