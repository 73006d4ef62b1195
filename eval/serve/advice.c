/* The sample's text and finish decide; a sample without them, such as one of a pool's best kernels,
 * gets no advice. */
#include "eval/serve/advice.h"

#include <stdlib.h>
#include <string.h>

#include "eval/candidate/answer.h"
#include "eval/device/outcome.h"

/* Appends the advice on a sample's text; -1: there is none. */
static int advise(const View *sample, Buffer *out)
{
    const char *text, *finish;
    size_t n, f;
    Error err;
    if (view_text(sample, "text", &text, &n, &err) ||
        view_text(sample, "finish", &finish, &f, &err) || !n)
        return -1;
    return answer_advice(text, n, f == 6 && !memcmp(finish, "length", 6), out);
}

void advice_without_code(const View *sample, Buffer *out)
{
    if (advise(sample, out)) buffer_puts(out, "the answer holds no code");
}

void advice_add(const View *sample, const View *verdict, Record *r)
{
    Error err;
    Outcome o;
    char *outcome = view_strdup(verdict, "outcome", &err),
         *message = view_strdup(verdict, "message", &err);
    Buffer b;
    buffer_init(&b, 1 << 14);
    if (outcome && message && !outcome_from_name(outcome, &o) &&
        (o == OUTCOME_PLAN_ERROR || o == OUTCOME_COMPILE_ERROR)) {
        buffer_printf(&b, "%s\n(", message);
        if (!advise(sample, &b) && !buffer_puts(&b, ")")) record_text(r, "message", b.data);
    }
    buffer_release(&b);
    free(outcome);
    free(message);
}
