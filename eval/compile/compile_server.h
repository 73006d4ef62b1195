/* The inside of quern-compile --serve: NVRTC loaded and warmed once, one caged child a request. */
#ifndef EVAL_COMPILE_COMPILE_SERVER_H
#define EVAL_COMPILE_COMPILE_SERVER_H

#include "base/error.h"

/* Until `in` ends. A failure to start is also told to the client as a hello that says why. */
int compile_server_run(int in, int out, Error *err);

#endif
