/* Load and unload LoRA adapters on a running server. vLLM has the routes under /v1; it needs
 * --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True. SGLang has them beside /v1 and needs
 * --enable-lora. */
#ifndef LLM_ADAPTER_H
#define LLM_ADAPTER_H

#include "llm/llm.h"

typedef enum { LLM_ADAPTERS_VLLM, LLM_ADAPTERS_SGLANG } LlmAdapterApi;

typedef struct {
    LlmAdapterApi api;
    char model[600]; /* the model's name in requests */
} LlmAdapter;

/* Load the PEFT directory `path`, as the server sees it, under `name`. opt gives the endpoint and
 * the base model's name. A name that is loaded already is no error: the caller derives names from
 * the content. */
int llm_adapter_load(const LlmOptions *opt, const char *name, const char *path, LlmAdapter *out,
                     Error *err);
/* Unload an adapter. An adapter that is not loaded is no error. */
int llm_adapter_unload(const LlmOptions *opt, const LlmAdapter *a, const char *name, Error *err);

#endif
