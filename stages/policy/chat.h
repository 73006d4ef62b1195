/* Chat templates: how a prompt and its answer become token ids. There are the templates of Qwen2.5,
 * Qwen3 and Llama 3, and a plain one for Quern's small model. Special tokens are inserted by id and
 * text is encoded between them, so text never becomes a special token. The ids equal those of
 * apply_chat_template in transformers (tests/fixtures/make_chat.py). */
#ifndef STAGES_POLICY_CHAT_H
#define STAGES_POLICY_CHAT_H

#include "model/tokenizer/tokenizer.h"

typedef enum {
    CHAT_SMALL,   /* <|im_start|>user ..., each part encoded by itself */
    CHAT_CHATML,  /* the same, adjoining text encoded together (Qwen3-Instruct-2507) */
    CHAT_QWEN2_5, /* with its system prompt */
    CHAT_QWEN3,   /* with a thought before the answer, which may be empty */
    CHAT_LLAMA3,
    CHAT_LLAMA3_1, /* 3.1 to 3.3: with a system block of two dates, the published defaults */
} ChatKind;

typedef struct {
    const Tokenizer *t; /* outlives it */
    ChatKind kind;
    int thinking; /* Qwen3: the model may think; 0, the default: it gets an empty thought */
    int begin, open, header; /* special ids; -1: not in the template */
    int end;                 /* the token that ends an answer */
} Chat;

/* Chooses the template of a model directory: by chat_template.jinja, else by the chat_template of
 * tokenizer_config.json, else by the special tokens of t. Another template is ERROR_UNSUPPORTED. */
int chat_detect(const Tokenizer *t, const char *dir, Chat *out, Error *err);
/* Makes the template of a kind. It is an error when t lacks one of its special tokens; the message
 * names `where`. */
int chat_make(const Tokenizer *t, ChatKind kind, const char *where, Chat *out, Error *err);

/* Appends the ids of a user's text, up to the start of the answer. Text never becomes a special
 * token. */
int chat_encode_prompt(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err);
/* Appends the ids of an answer with its end token. */
int chat_encode_answer(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err);

#endif
