/* What the page of a run that is going on shows first. */
#include <math.h>
#include <stdio.h>

#include "report/report.h"

static void minutes(Buffer *b, double seconds)
{
    long s = lround(seconds);
    if (s < 60)
        buffer_printf(b, "%ld s", s);
    else if (s < 3600)
        buffer_printf(b, "%ld min %02ld s", s / 60, s % 60);
    else
        buffer_printf(b, "%ld h %02ld min", s / 3600, s / 60 % 60);
}

static void stage(const RunStatus *s, int i, Buffer *b)
{
    const StageStatus *k = &s->stage[i];
    int total = k->planned ? k->planned : 1, done = k->planned ? k->rounds : k->done;
    buffer_printf(b, "<tr><td>%s<td>", run_stage_names[i]);
    if (k->planned) buffer_printf(b, "%d of %d", k->rounds, k->planned);
    buffer_puts(b, "<td>");
    if (k->rules) minutes(b, k->seconds);
    buffer_printf(b,
                  "<td class=\"left\">%s<td class=\"bar\"><div class=\"whole\"><i class=\"part\" "
                  "style=\"width:%.0f%%\"></i></div></tr>\n",
                  k->failed    ? "failed"
                  : k->done    ? "done"
                  : k->running ? "under way"
                  : k->rules   ? "begun"
                               : "waits",
                  100.0 * done / total);
}

void html_live(const RunStatus *s, Buffer *b)
{
    buffer_puts(
        b, "<p class=\"note\"><b>This run is going on.</b> The page is of what is finished "
           "so far; it is written after every round and reloads itself. The samples that "
           "compare the stages come at the end.</p>\n<div class=\"scroll\"><table "
           "class=\"narrow\"><tr><th>stage<th>rounds<th>time<th class=\"left\">state<th></tr>\n");
    for (int i = 0; i < STAGES; i++) stage(s, i, b);
    buffer_puts(b, "</table></div>\n");
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        if (r->state != RULE_FAILED) continue;
        buffer_puts(b, "<p class=\"note\">");
        html_text(b, r->name);
        buffer_printf(b, " failed with exit %d: ", r->exit_status);
        html_text(b, r->said);
        buffer_puts(b, "</p>\n");
    }
}
