/* Adapters (LoRA) of a running server: loaded before requests name them, unloaded after. vLLM has
 * the routes under /v1 (started with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True),
 * SGLang beside it (--enable-lora). */
#ifndef LLM_ADAPTER_H
#define LLM_ADAPTER_H

#include "llm/llm.h"

typedef enum { LLM_ADAPTERS_VLLM, LLM_ADAPTERS_SGLANG } LlmAdapterApi;

typedef struct {
    LlmAdapterApi api;
    char model[600]; /* what requests give as the model */
} LlmAdapter;

/* Load the PEFT directory `path`, as the server sees it, under `name`. A name that the server has
 * already is no error: the caller makes names of the content. opt gives the endpoint and the base
 * model's name. */
int llm_adapter_load(const LlmOptions *opt, const char *name, const char *path, LlmAdapter *out,
                     Error *err);
/* One that is not there any more is no error. */
int llm_adapter_unload(const LlmOptions *opt, const LlmAdapter *a, const char *name, Error *err);

#endif
