/* How a prompt and its answer are laid out for a model: the chat templates of Qwen2.5, Qwen3 and
 * Llama 3, and the plain one of Quern's own small model. A template is made of ids: special tokens,
 * and encoded text between them, so text never becomes a special token. Compared with transformers'
 * apply_chat_template (tests/fixtures/make_chat.py). */
#ifndef STAGES_POLICY_CHAT_H
#define STAGES_POLICY_CHAT_H

#include "model/tokenizer/tokenizer.h"

typedef enum {
    CHAT_SMALL,   /* <|im_start|>user ..., each part encoded by itself */
    CHAT_CHATML,  /* the same of a published model (Qwen3-Instruct-2507): adjoining text is encoded
                     together */
    CHAT_QWEN2_5, /* its system prompt before it */
    CHAT_QWEN3,   /* a thought before the answer, or an empty one */
    CHAT_LLAMA3,
    CHAT_LLAMA3_1, /* 3.1 to 3.3: a system block with two dates, the published default for today's
                    */
} ChatKind;

typedef struct {
    ChatKind kind;
    int thinking; /* Qwen3: the model may think; 0, as chat_of sets it: the prompt ends with an
                     empty thought */
    int begin, open, header; /* special ids; -1: the template has none */
    int end;                 /* the token that ends an answer */
} Chat;

/* By the directory's chat_template.jinja, or the chat_template of its tokenizer_config.json;
 * without one by the special tokens. A template that is none of these is refused. */
int chat_of(const Tokenizer *t, const char *dir, Chat *out, Error *err);
/* Of a kind; an error when the tokenizer lacks its special tokens, which `where` is named for. */
int chat_make(const Tokenizer *t, ChatKind kind, const char *where, Chat *out, Error *err);

/* Ids of a user's text up to where the answer begins, appended; caller frees. */
int chat_encode_prompt(const Chat *c, const Tokenizer *t, const char *text, size_t len,
                       int32_t **ids, size_t *n, Error *err);
/* Ids of an answer with its end token, appended. */
int chat_encode_answer(const Chat *c, const Tokenizer *t, const char *text, size_t len,
                       int32_t **ids, size_t *n, Error *err);

#endif
