/* What a run may spend on endpoints, and what it has spent. A ledger, a text file of the run, has a
 * line for each request that was sent: seconds since 1970, model, tokens of the prompt, tokens of
 * the answer, US dollars, and "estimated" where the server did not say the tokens. Programs of a run
 * append to it, so that a budget holds over all of them and over interruptions. */
#ifndef STAGES_POLICY_BUDGET_H
#define STAGES_POLICY_BUDGET_H

#include <stddef.h>

#include "base/error.h"
#include "llm/llm.h"

/* US dollars for a million tokens; negative: not known. */
typedef struct {
    double input, output;
} BudgetPrice;
static const BudgetPrice budget_price_unknown = {-1, -1};

typedef struct {
    double usd, seconds; /* 0: no limit */
    long requests;       /* 0: no limit */
    const char *ledger;  /* NULL: none is kept */
    /* ---- so far ---- */
    double spent;
    long asked, running; /* answers paid for; requests under way */
    double here;         /* spent by this process, on `answers` answers */
    long answers;
    char over[160]; /* why no more may be asked; "": it may */
} Budget;

/* Reads a budget such as "30m", "200 requests", "$5", "5usd" or "2h,100requests,$3"; "" is none. */
int budget_parse(const char *text, Budget *out, Error *err);
/* "0.55,2.19": for a million tokens of prompts, and of answers. */
int budget_price_parse(const char *text, BudgetPrice *out, Error *err);
/* Reads what the ledger says was spent. A damaged line counts as a request without a cost, with a
 * warning. */
int budget_open(Budget *b, const char *ledger, Error *err);

double budget_cost(const BudgetPrice *p, double prompt_tokens, double answer_tokens);
/* About how many tokens a text has. */
double budget_tokens(size_t bytes);

/* Says, before the first request, how many there may be at most and what they cost at most. With a
 * budget in dollars an unknown price is an error. */
int budget_estimate(const Budget *b, const char *who, const BudgetPrice *p, long requests,
                    double prompt_tokens, int max_tokens, Error *err);
/* Asks whether one more request may be sent, which costs at most `worst`: from the first answers on
 * their mean is expected. Returns 1 and counts it as under way, or 0: then b->over says why. */
int budget_take(Budget *b, double worst);
/* Who asks: what LlmOptions needs to count every attempt of a run's requests. */
typedef struct {
    Budget *budget; /* NULL: nothing is counted */
    const char *who;
    const BudgetPrice *price;
} BudgetAccount;
/* An LlmSent: ends what budget_take began and appends a line to the ledger. Where the request is to be
 * sent again, that is asked of the budget as budget_take does. */
int budget_sent(void *account, const LlmAttempt *attempt, Error *err);
/* ERROR_STOPPED and the sentence when the budget has ended the work; else 0. */
int budget_check(const Budget *b, Error *err);

/* Rows of a flag table. */
#define BUDGET_FLAGS(budget, ledger)                                                      \
    FLAG("budget", FLAG_TEXT, &(budget), "of endpoints: 30m, 200 requests, $5; by comma", \
         .aside = 1),                                                                     \
        FLAG("ledger", FLAG_TEXT, &(ledger), "file of what the run has spent", .aside = 1)

#endif
