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
    CHAT_PIECES,   /* another one, by the pieces that tools/chat_pieces.py found and proved */
} ChatKind;

enum { CHAT_IDS = 4096, CHAT_TEXT = 1024 }; /* as tools/chat_pieces.py has it */

/* What stands around a user's text: ids up to the last special token before it and the text after
 * that token, then the text up to the next special token and ids from there. */
typedef struct {
    int32_t before[CHAT_IDS], after[CHAT_IDS];
    int n_before, n_after;
    char before_text[CHAT_TEXT], after_text[CHAT_TEXT];
    int trim, trim_answer; /* as Python's strip does */
} ChatPieces;

typedef struct {
    const Tokenizer *t; /* outlives it */
    ChatKind kind;
    int thinking; /* Qwen3: the model may think; 0, the default: it gets an empty thought */
    int begin, open, header; /* special ids; -1: not in the template */
    int end;                 /* the token that ends an answer */
    ChatPieces pieces;       /* of CHAT_PIECES */
} Chat;

/* Chooses the template of a model directory: the whole text of chat_template.jinja, else of the
 * chat_template of tokenizer_config.json, is one of a table, or is the one that quern_chat.json there
 * was made of. Without a template the special tokens of t decide. Another one is ERROR_UNSUPPORTED. */
int chat_detect(const Tokenizer *t, const char *dir, Chat *out, Error *err);
/* Makes the template that the setting CHAT names, whatever a checkpoint's own is: chatml, qwen2.5, qwen3,
 * llama3, llama3.1 or a file that tools/chat_pieces.py wrote. */
int chat_given(const Tokenizer *t, const char *chat, Chat *out, Error *err);
/* Writes dir/quern_chat.json, by which chat_detect finds it there. */
int chat_give(const char *chat, const char *dir, Error *err);
/* Returns whether the SHA-256 of a template's text, without a line break at its end, is of one that is
 * known, and its kind. */
int chat_known(const char *digest, ChatKind *out);
/* Makes the template of a kind. It is an error when t lacks one of its special tokens; the message
 * names `where`. */
int chat_make(const Tokenizer *t, ChatKind kind, const char *where, Chat *out, Error *err);

/* Appends the ids of a user's text, up to the start of the answer. Text never becomes a special
 * token. */
int chat_encode_prompt(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err);
/* Appends the ids of an answer with its end token. */
int chat_encode_answer(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err);

#endif
