/* The reply frames of quern-compile: what NVRTC (gpu/nvrtc.h) makes of a candidate, as wire fields.
 * Everyone else talks to that process through eval/compile/compile_client.h. */
#ifndef EVAL_COMPILE_NVRTC_REPLY_H
#define EVAL_COMPILE_NVRTC_REPLY_H

#include "base/buffer.h"
#include "gpu/nvrtc.h"

enum { NVRTC_MAX_REPLY = NVRTC_MAX_PTX + NVRTC_MAX_CUBIN + (1 << 20) };

/* Compile a candidate with the flags that all have, and write the reply to out; the job's name and
 * options are not read. `alone`: it includes no header, and needs none of what NVRTC declares for
 * CUDA's own. */
void nvrtc_reply(const Nvrtc *n, const NvrtcJob *job, int alone, Buffer *out);

/* The flags that compilations have beside the arch: part of a cache's keys. */
void nvrtc_flags(Buffer *out);

#endif
