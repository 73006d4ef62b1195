/* Names of techniques come from a run's files: what is not plain is not put into the page. */
#include "report/metrics/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_ROUNDS = 12 };

static double value_of(const FileNumbers *f, const char *name)
{
    const double *v = run_number(f, name);
    return v ? *v : NAN;
}

static void percent(Buffer *b, double v)
{
    if (isnan(v))
        buffer_puts(b, "<td>–");
    else
        buffer_printf(b, "<td>%.0f%%", 100 * v);
}

/* The metrics of the rounds of both stages that have this value, at most MAX_ROUNDS, evenly spread. */
static int find_rounds(const RunNumbers *n, const char *has, const FileNumbers *out[MAX_ROUNDS])
{
    static const char *const stages[] = {"selfsup", "crl"};
    const FileNumbers **all = memory_array((size_t)n->n, sizeof *all);
    int found = 0, kept = 0;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < n->n; i++)
            if (!strcmp(n->files[i].stage, stages[g]) && n->files[i].round > 0 &&
                !isnan(value_of(&n->files[i], has)))
                all[found++] = &n->files[i];
    kept = found < MAX_ROUNDS ? found : MAX_ROUNDS;
    for (int k = 0; k < kept; k++) /* the first and the last are among them */
        out[k] = all[kept > 1 ? k * (found - 1) / (kept - 1) : 0];
    free(all);
    return kept;
}

int learned_techniques(const RunNumbers *n, Buffer *b)
{
    const FileNumbers *f[MAX_ROUNDS];
    int rounds = find_rounds(n, "technique.vectors", f), rows = 0;
    if (!rounds) return 0;
    buffer_puts(b, "<div class=\"scroll\"><table><tr><th>technique");
    for (int k = 0; k < rounds; k++) buffer_printf(b, "<th>%s %d", f[k]->stage, f[k]->round);
    buffer_puts(b, "</tr>\n");
    for (int i = 0; i < f[0]->n_steps; i++) {
        const char *name = f[0]->steps[i].name;
        if (strncmp(name, "technique.", 10) != 0 || !run_name_is_plain(name)) continue;
        buffer_printf(b, "<tr><td>%s", name + 10);
        for (int k = 0; k < rounds; k++) percent(b, value_of(f[k], name));
        buffer_puts(b, "</tr>\n");
        rows++;
    }
    buffer_puts(b, "</table></div>\n");
    return rows;
}

static double turn_value(const FileNumbers *f, int turn, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "turn.%d.%s", turn, what);
    return value_of(f, name);
}

static void turn_row(const FileNumbers *f, int turn, Buffer *b)
{
    buffer_printf(b, "<tr%s><td>%s", turn == 1 ? " class=\"top\"" : "", turn == 1 ? f->stage : "");
    if (turn == 1) buffer_printf(b, " %d", f->round);
    buffer_printf(b, "<td>%d<td>%.0f", turn, turn_value(f, turn, "samples"));
    percent(b, turn_value(f, turn, "success"));
    buffer_printf(b, "<td>%.2f<td>%.2f", turn_value(f, turn, "mean"), turn_value(f, turn, "best"));
    percent(b, turn_value(f, turn, "mended"));
    percent(b, turn_value(f, turn, "faster"));
    percent(b, turn_value(f, turn, "broken"));
    buffer_puts(b, "</tr>\n");
}

int learned_turns(const RunNumbers *n, Buffer *b)
{
    const FileNumbers *f[MAX_ROUNDS];
    int rounds = find_rounds(n, "turn.2.success", f), rows = 0;
    if (!rounds) return 0;
    buffer_puts(b,
                "<div class=\"scroll\"><table><tr><th>round<th>turn<th>answers<th>correct<th>mean"
                "<th>best so far<th>mended<th>faster<th>broken</tr>\n");
    for (int k = 0; k < rounds; k++)
        for (int turn = 1; !isnan(turn_value(f[k], turn, "success")); turn++, rows++)
            turn_row(f[k], turn, b);
    buffer_puts(b, "</table></div>\n");
    return rows;
}
