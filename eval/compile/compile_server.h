/* The compile server, quern-compile --serve: it loads NVRTC once, warms up with one kernel
 * before the first request that compiles, and serves each in a sandboxed child. */
#ifndef EVAL_COMPILE_COMPILE_SERVER_H
#define EVAL_COMPILE_COMPILE_SERVER_H

#include "base/error.h"

/* Serve until `in` ends. A failure to start is also sent to the client, in place of the hello. */
int compile_server_run(int in, int out, Error *err);

#endif
