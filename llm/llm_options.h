/* The options of requests to an endpoint: which API, which model, how to sample, how to wait. */
#ifndef LLM_LLM_OPTIONS_H
#define LLM_LLM_OPTIONS_H

typedef enum { LLM_OPENAI, LLM_ANTHROPIC } LlmApi;

typedef struct {
    LlmApi api;
    const char *model;
    const char *key_env;  /* variable that holds the key; NULL: the vendor's */
    const char *base_url; /* NULL: $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL, else the vendor's */
    double temperature;
    int max_tokens;
    int concurrency;          /* requests at once, at most; lowered on 429 (AIMD) */
    double connect_timeout_s; /* 0: 10 */
    double request_timeout_s; /* 0: 600 */
    /* A request that has failed for this long ends with its error; 0: 900, so that a request that
     * ran into the time limit is tried once more. */
    double give_up_s;
    double absent_s;     /* stop the run when nothing was reached for this long; 0: 60 */
    const char *system;  /* system prompt or NULL */
    double top_p, min_p; /* 0: not sent, the server's default holds */
    int top_k;           /* 0: not sent */
    const char *stop;    /* a text that ends the answer, or NULL */
    /* Ask for token ids and log-probabilities (vLLM, SGLang). All sampling parameters are then
     * sent, so that no default of the server changes the model's distribution. */
    int want_ids;
} LlmOptions;

#endif
