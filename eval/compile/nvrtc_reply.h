/* The reply frames of quern-compile: NVRTC's result (gpu/nvrtc.h) for a candidate as fields of
 * eval/compile/wire.h. Other programs use eval/compile/compile_client.h. */
#ifndef EVAL_COMPILE_NVRTC_REPLY_H
#define EVAL_COMPILE_NVRTC_REPLY_H

#include "base/buffer.h"
#include "gpu/nvrtc.h"

enum { NVRTC_MAX_REPLY = NVRTC_MAX_PTX + NVRTC_MAX_CUBIN + (1 << 20) };

/* Compile a candidate with the fixed flags and write the reply to out. The job's name and options
 * are not read. alone: the source includes no header, so NVRTC's built-in declarations for CUDA's
 * headers are left out. */
void nvrtc_reply(const Nvrtc *n, const NvrtcJob *job, int alone, Buffer *out);

/* All flags but the architecture, as a text for the keys of the cache. */
void nvrtc_flags(Buffer *out);

#endif
