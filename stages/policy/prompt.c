/* The parts that both styles share, and the neutralization of lines in exemplars. The prompts are in
 * digests: a change of a text makes every sample again. */
#include "stages/policy/prompt.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/words.h"
#include "tasks/graph/formula.h"

enum { BRIEF_FORMULA = 1200 }; /* bytes of a graph's formulas in a brief prompt */

static void put_tensors(Buffer *out, const TaskTensor *x, int n)
{
    for (int i = 0; i < n; i++) {
        buffer_printf(out, " %s %s[", dtype_ctype(x[i].dtype), x[i].name);
        for (int k = 0; k < x[i].rank; k++) buffer_printf(out, "%s%s", k ? "," : "", x[i].shape[k]);
        buffer_puts(out, "]");
    }
}

static void put_code(Buffer *out, const char *s, size_t n)
{
    buffer_append(out, s, n);
    if (n && s[n - 1] != '\n') buffer_puts(out, "\n");
}

/* Words that may follow the # of a directive. */
static const char *const directives[] = {
    "define", "undef", "include",  "include_next", "if",    "ifdef",   "ifndef", "elif", "elifdef",
    "else",   "endif", "elifndef", "line",         "error", "warning", "pragma", "ident"};

static size_t blanks(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\v\f", s[i]) && s[i]) i++;
    return i;
}

/* Returns the length of "codeN (score", which stands above each exemplar, at the start of s: the
 * text after the slashes of a comment. 0: s is something else. */
static size_t title_length(const char *s, size_t n)
{
    size_t i = blanks(s, n), digits;
    if (n - i < 4 || strncasecmp(s + i, "code", 4)) return 0;
    i += 4;
    i += blanks(s + i, n - i);
    for (digits = i; i < n && isdigit((unsigned char)s[i]); i++) {
    }
    if (i == digits) return 0;
    i += blanks(s + i, n - i);
    if (i == n || s[i] != '(') return 0;
    i++;
    i += blanks(s + i, n - i);
    return n - i < 5 || strncasecmp(s + i, "score", 5) ? 0 : i + 5;
}

/* Returns how many number signs make the line a heading: more than one, or one before a word that
 * is no directive's. 0: no heading. */
static size_t heading_length(const char *s, size_t n)
{
    size_t signs = 0, at, len = 0;
    while (signs < n && s[signs] == '#') signs++;
    if (signs != 1) return signs;
    at = 1 + blanks(s + 1, n - 1);
    if (at < n && s[at] == '#') return 1;
    while (at + len < n && (isalpha((unsigned char)s[at + len]) || s[at + len] == '_')) len++;
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (word_is(s + at, len, directives[i])) return 0;
    return len ? 1 : 0;
}

/* Returns the length of the mark that makes the line s look like a part of a prompt (a fence, a
 * heading or an exemplar's title), which begins at s + *at. 0: the line has none. */
static size_t forged_length(const char *s, size_t n, size_t *at)
{
    size_t i = *at = blanks(s, n), len = 0;
    while (len < n - i && s[i + len] == '`') len++;
    if (len >= 3) return len;
    if (i < n && s[i] == '#') return heading_length(s + i, n - i);
    for (len = 0; len < n - i && s[i + len] == '/'; len++) {
    }
    if (len < 2) return 0;
    *at = i + len;
    return title_length(s + *at, n - *at);
}

static size_t line_length(const char *s, size_t n)
{
    size_t len = 0;
    while (len < n && s[len] != '\n' && s[len] != '\r') len++;
    return len < n ? len + 1 : len;
}

/* Appends a kernel byte for byte, with forged titles, headings and fences replaced by dots. Such
 * marks can only stand in comments and in skipped #if groups, where dots change nothing. A marked
 * line that continues another one (a macro with ## may) is joined to it, as a compiler does. */
void prompt_kernel_write(Buffer *out, const char *s, size_t n)
{
    int joined = 0;
    char last = '\n';
    for (size_t len, next, at; n; s += len, n -= len) {
        len = line_length(s, n);
        next = forged_length(s + len, line_length(s + len, n - len), &at);
        int join = next && len >= 2 && s[len - 2] == '\\' && s[len - 1] == '\n';
        size_t signs = joined ? 0 : forged_length(s, len, &at), kept = len - (join ? 2 : 0);
        if (!signs) at = 0;
        buffer_append(out, s, at);
        for (size_t i = 0; i < signs; i++) buffer_puts(out, ".");
        buffer_append(out, s + at + signs, kept - at - signs);
        joined = join;
        last = s[len - 1];
    }
    if (last != '\n') buffer_puts(out, "\n");
}

/* The task, and in the style full all that a writer must know of it. */
static void put_task(Buffer *out, const Task *t, const PromptStyle *style)
{
    int full = style->full;
    if (full) prompt_rules_write(out, t);
    buffer_printf(out, "# Task %s\n", t->name);
    if (full) buffer_printf(out, "%s\n", t->description);
    buffer_puts(out, "axes");
    for (int i = 0; i < t->n_axes; i++) buffer_printf(out, " %s", t->axis_name[i]);
    buffer_puts(out, "\nin");
    put_tensors(out, t->inputs, t->n_inputs);
    buffer_puts(out, "\nout");
    put_tensors(out, t->outputs, t->n_outputs);
    buffer_puts(out, !full      ? "\n"
                     : t->graph ? "\n\n# Reference Code\n```python\n"
                                : "\n\n# Reference Code\n```c\n");
    if (!full && t->graph) graph_formula(t->graph, FORMULA_LINES, BRIEF_FORMULA, out);
    if (full) {
        put_code(out, t->reference_source, strlen(t->reference_source));
        buffer_puts(out, "```\n\n");
        prompt_measure_write(out, t, style);
    }
}

/* Lists the scores, the highest first: the small model compares kernels by this list. */
static void put_ranking(Buffer *out, const Exemplar *ex, int n)
{
    buffer_puts(out, "# Scores\n");
    for (int rank = 0; rank < n; rank++)
        for (int i = 0; i < n; i++) {
            int before = 0;
            for (int k = 0; k < n; k++)
                before += ex[k].score > ex[i].score || (ex[k].score == ex[i].score && k < i);
            if (before == rank) buffer_printf(out, "code%d %.2f\n", i + 1, ex[i].score);
        }
}

void prompt_write(Buffer *out, const Task *t, const Exemplar *ex, int n, const PromptStyle *style)
{
    int full = style->full;
    put_task(out, t, style);
    if (n)
        buffer_puts(out, full ? "# Previous CUDA Implementations with Scores\n" : "# Previous\n");
    for (int i = 0; i < n; i++) {
        buffer_printf(out, "// code%d (score %.2f)\n", i + 1, ex[i].score);
        prompt_kernel_write(out, ex[i].source, ex[i].len);
    }
    if (full && n) buffer_puts(out, "\n");
    if (!full && n > 1) put_ranking(out, ex, n);
    if (full) prompt_protocol_write(out, n);
}

void prompt_write_again(Buffer *out, const Task *t, const PromptAttempt *a,
                        const PromptStyle *style)
{
    int full = style->full;
    put_task(out, t, style);
    buffer_puts(out, full ? "# Your Previous Answer\n" : "# Answer\n");
    if (a->len)
        prompt_kernel_write(out, a->source, a->len);
    else if (full)
        buffer_puts(out, "(It holds no candidate.)\n");
    buffer_puts(out, full ? "\n# The Verdict on It\n" : "# Verdict\n");
    prompt_kernel_write(out, a->verdict, a->verdict_len);
    if (!full) return;
    buffer_puts(out,
                "Correct what the verdict names. If the candidate is correct, make it faster.\n\n");
    prompt_protocol_write(out, 0);
}
