/* Explains with counters why a kernel is faster than its baseline. */
#include <math.h>

#include "report/report.h"

int explain_rows(const ReportTask *t, CounterRow out[EXPLAIN_ROWS])
{
    int n = 0;
    if (!isnan(t->time_us) && t->source)
        out[n++] = (CounterRow){t->predicted ? "predicted time" : "time", "µs", t->baseline_us,
                                t->time_us, t->time_us < t->baseline_us ? 1 : -1};
    return n + why_rows(&t->baseline, &t->best, out + n);
}

void explain_text(const ReportTask *t, Buffer *out)
{
    if (t->refused) {
        buffer_printf(out,
                      "The fastest kernel (%.2f×, found in %s) was refused when it was judged "
                      "again, on other inputs: %s. The baseline "
                      "stands.",
                      t->found_score, t->found, t->refused);
        return;
    }
    if (!t->source) {
        buffer_puts(out, "No sample was correct; the baseline stands.");
        return;
    }
    if (t->score <= 1.01) {
        buffer_puts(out, "No correct kernel was clearly faster than the baseline.");
        return;
    }
    why_difference(&t->baseline, &t->best, "The baseline", "This kernel", out);
}
