/* The ledger is appended to with one write a line, so that two programs can share it. */
#include "stages/policy/budget.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"

enum { MAX_LEDGER = 256 << 20 };

/* ---- texts ---- */

static int is_unit(const char *p, size_t n, const char *unit)
{
    return strlen(unit) == n && !strncasecmp(p, unit, n);
}

/* One part, "30m": its number and its unit. */
static int parse_part(const char *p, size_t n, Budget *out)
{
    char text[32], *end;
    if (n == 0 || n >= sizeof text) return -1;
    int dollars = *p == '$';
    memcpy(text, p + dollars, n - (size_t)dollars);
    text[n - (size_t)dollars] = 0;
    double v = strtod(text, &end);
    if (end == text || !isfinite(v) || v <= 0 || v > 1e9) return -1;
    end += strspn(end, " ");
    size_t unit = strlen(end);
    if (dollars || is_unit(end, unit, "usd")) {
        if (dollars && unit) return -1;
        out->usd = v;
    } else if (is_unit(end, unit, "requests") || is_unit(end, unit, "request")) {
        if (v != floor(v)) return -1;
        out->requests = (long)v;
    } else if (unit == 1 && strchr("smh", *end)) {
        out->seconds = v * (*end == 'h' ? 3600 : *end == 'm' ? 60 : 1);
    } else {
        return -1;
    }
    return 0;
}

int budget_parse(const char *text, Budget *out, Error *err)
{
    *out = (Budget){0};
    for (const char *p = text; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        const char *at = p;
        p += n;
        while (n && *at == ' ') at++, n--;
        while (n && at[n - 1] == ' ') n--;
        if (parse_part(at, n, out))
            return error_set(
                err, ERROR_USAGE,
                "the budget '%s': expected 30m (s, m, h), 200 requests, $5 or 5usd, by "
                "comma, found '%.*s'",
                text, (int)n, at);
    }
    return 0;
}

int budget_price_parse(const char *text, BudgetPrice *out, Error *err)
{
    int end = 0;
    if (sscanf(text, "%lf,%lf%n", &out->input, &out->output, &end) == 2 && !text[end] &&
        out->input >= 0 && out->output >= 0 && isfinite(out->input) && isfinite(out->output))
        return 0;
    return error_set(err, ERROR_USAGE,
                     "the price '%s': expected $ for a million tokens of prompts and of answers, "
                     "such as 0.55,2.19",
                     text);
}

/* ---- the ledger ---- */

static int read_line(Budget *b, const char *line, size_t n)
{
    char text[512];
    long when, in, out;
    double usd;
    int end = 0;
    if (n >= sizeof text) return -1;
    memcpy(text, line, n);
    text[n] = 0;
    if (sscanf(text, "%ld\t%*[^\t]\t%ld\t%ld\t%lf%n", &when, &in, &out, &usd, &end) != 4 ||
        (text[end] && strcmp(text + end, "\testimated")) || !isfinite(usd))
        return -1;
    b->asked++;
    b->spent += usd;
    return 0;
}

int budget_open(Budget *b, const char *ledger, Error *err)
{
    Buffer text;
    int rc = 0, line = 0;
    b->ledger = ledger;
    if (!ledger || !file_exists(ledger)) return 0;
    buffer_init(&text, MAX_LEDGER);
    rc = file_read(ledger, MAX_LEDGER, &text, err);
    for (size_t at = 0; !rc && at < text.len;) {
        const char *p = text.data + at, *nl = memchr(p, '\n', text.len - at);
        size_t n = nl ? (size_t)(nl - p) : text.len - at;
        line++;
        if (read_line(b, p, n)) {
            b->asked++; /* torn by a kill: one request, of an unknown cost */
            log_warn("%s:%d: a damaged line counts as one request without cost", ledger, line);
        }
        at += n + 1;
    }
    buffer_release(&text);
    return rc;
}

static int append(const char *ledger, const char *line, size_t n, Error *err)
{
    int fd = open(ledger, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return error_errno(err, "cannot open %s", ledger);
    char last = '\n';
    off_t size = lseek(fd, 0, SEEK_END);
    int torn = size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
    int rc = (torn && write(fd, "\n", 1) != 1) || write(fd, line, n) != (ssize_t)n || fdatasync(fd);
    if (rc) rc = error_errno(err, "cannot write %s", ledger);
    close(fd);
    return rc;
}

/* ---- asking ---- */

double budget_cost(const BudgetPrice *p, double prompt_tokens, double answer_tokens)
{
    return p->input < 0 ? 0 : (p->input * prompt_tokens + p->output * answer_tokens) / 1e6;
}

double budget_tokens(size_t bytes)
{
    return (double)bytes / 3.5;
}

int budget_estimate(const Budget *b, const char *who, const BudgetPrice *p, long requests,
                    double prompt_tokens, int max_tokens, Error *err)
{
    char cost[64] = "the price is not known", left[80] = "";
    double largest = budget_cost(p, prompt_tokens, (double)requests * max_tokens);
    if (!requests) return 0;
    if (b->usd > 0 && p->input < 0)
        return error_set(
            err, ERROR_USAGE,
            "%s: a budget in dollars needs the price of its tokens (--price IN,OUT in SAMPLE, or "
            "\"price\" in a file of teachers)",
            who);
    if (p->input >= 0) snprintf(cost, sizeof cost, "at most $%.2f", largest);
    if (b->usd > 0)
        snprintf(left, sizeof left, "; $%.2f of $%.2f are left", b->usd - b->spent, b->usd);
    log_info(
        "%s: at most %ld requests, about %.3g M tokens of prompts and at most %.3g M of answers: "
        "%s%s",
        who, requests, prompt_tokens / 1e6, (double)requests * max_tokens / 1e6, cost, left);
    return 0;
}

int budget_take(Budget *b, double worst)
{
    double one = b->answers ? b->here / (double)b->answers : worst;
    if (*b->over) return 0;
    if (b->requests && b->asked + b->running >= b->requests)
        snprintf(b->over, sizeof b->over, "the budget of %ld requests is spent", b->requests);
    else if (b->usd > 0 && b->spent + one * (double)(b->running + 1) > b->usd)
        snprintf(b->over, sizeof b->over,
                 "the budget of $%.2f is spent: $%.4f so far, and the next answer may cost $%.4f",
                 b->usd, b->spent, one);
    if (*b->over) return 0;
    b->running++;
    return 1;
}

static int add(Budget *b, const BudgetAccount *c, const LlmAttempt *a, Error *err)
{
    char line[256];
    double usd = budget_cost(c->price, (double)a->prompt_tokens, (double)a->completion_tokens);
    if (b->running) b->running--;
    if (a->status == LLM_UNSENT) return 0;
    b->asked++;
    b->answers += a->status == 200;
    b->spent += usd;
    b->here += usd;
    if (!b->ledger) return 0;
    int n = snprintf(line, sizeof line, "%lld\t%.150s\t%ld\t%ld\t%.8f%s\n", (long long)time(NULL),
                     c->who, a->prompt_tokens, a->completion_tokens, usd,
                     a->estimated ? "\testimated" : "");
    return append(b->ledger, line, (size_t)n, err);
}

int budget_sent(void *account, const LlmAttempt *a, Error *err)
{
    const BudgetAccount *c = account;
    if (!c->budget) return 0;
    if (add(c->budget, c, a, err)) return -1;
    double worst = budget_cost(c->price, budget_tokens(a->prompt_bytes), a->max_tokens);
    return a->again && !budget_take(c->budget, worst);
}

int budget_check(const Budget *b, Error *err)
{
    return *b->over ? error_set(err, ERROR_STOPPED,
                                "%s; what was answered is kept, and the same command with a larger "
                                "BUDGET continues",
                                b->over)
                    : 0;
}
