/* Of a task's best kernel: where its time goes by line, how much of each resource's peak it uses, and
 * the roofline of its device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/sim/time/profile.h"
#include "report/report.h"

/* ---- percent of peak ---- */

static const struct {
    const char *counter, *label;
} peaks[] = {
    {"time_dram_us", "DRAM"},           {"time_l2_us", "L2"},
    {"time_l1_us", "L1 and shared"},    {"time_lsu_us", "load-store unit"},
    {"time_issue_us", "issue slots"},   {"time_fp32_us", "fp32"},
    {"time_int_us", "integer"},         {"time_sfu_us", "special functions"},
    {"time_tensor_us", "tensor cores"},
};
enum { PEAKS = sizeof peaks / sizeof *peaks };

static double share_of(const Counters *c, const char *name)
{
    double whole = counters_get(c, "time_kernels_us"), v = counters_get(c, name);
    return whole > 0 && !isnan(v) ? fmin(1, v / whole) : NAN;
}

static void peak_table(const ReportTask *t, Buffer *b)
{
    if (isnan(share_of(&t->best, "time_dram_us"))) return;
    buffer_puts(b, "<div class=\"peaks\"><h4>Share of peak</h4><table>\n");
    for (int i = 0; i < PEAKS; i++) {
        double base = share_of(&t->baseline, peaks[i].counter),
               best = share_of(&t->best, peaks[i].counter);
        if (isnan(best) || (best < 0.03 && !(base >= 0.03))) continue;
        buffer_printf(b,
                      "<tr><td>%s<td>%.0f%%<td class=\"bar\"><div class=\"whole\" title=\"baseline "
                      "%.0f%%\"><i class=\"part\" style=\"width:%.0f%%\"></i>",
                      peaks[i].label, 100 * best, isnan(base) ? 0 : 100 * base, 100 * best);
        if (!isnan(base)) buffer_printf(b, "<u style=\"left:%.0f%%\"></u>", 100 * base);
        buffer_puts(b, "</div></tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

/* ---- the roofline ---- */

enum { WIDTH = 300, HEIGHT = 204, LEFT = 44, RIGHT = 20, TOP = 16, BOTTOM = 40 };

typedef struct {
    double x0, x1, y0, y1; /* logarithms to the base 10: flops a byte, flops a second */
} Box;

static double x_at(const Box *k, double intensity)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(intensity) - k->x0) / (k->x1 - k->x0);
}

static double y_at(const Box *k, double flops)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (k->y1 - log10(flops)) / (k->y1 - k->y0);
}

/* Finds the place of a kernel. Returns 0 where it has no arithmetic, no traffic or no time. */
static int place(const Counters *c, double us, double *intensity, double *rate)
{
    static const char *const kinds[] = {"fp32_flops", "fp16_flops", "fp64_flops", "tensor_flops"};
    double flops = 0, bytes = counters_get(c, "dram_bytes");
    for (int i = 0; i < 4; i++) {
        double v = counters_get(c, kinds[i]);
        if (v > 0) flops += v;
    }
    if (!(flops > 0) || !(bytes > 0) || !(us > 0)) return 0;
    *intensity = flops / bytes;
    *rate = flops / us * 1e6;
    return 1;
}

static void roofs(const Profile *p, const Box *k, Buffer *b)
{
    double memory = p->dram_bytes_per_s, fp32 = 2.0 * p->fp32_lanes * p->sm_count * p->clock_hz,
           tensor = p->tensor_flops * p->sm_count * p->clock_hz, x0 = pow(10, k->x0),
           x1 = pow(10, k->x1);
    buffer_printf(b, "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>",
                  x_at(k, x0), y_at(k, x0 * memory), x_at(k, tensor / memory), y_at(k, tensor),
                  x_at(k, fmax(x1, tensor / memory)), y_at(k, tensor));
    buffer_printf(b,
                  "<line class=\"grid\" x1=\"%.1f\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text "
                  "class=\"t end\" x=\"%d\" y=\"%.1f\">fp32</text><text class=\"t end\" x=\"%d\" "
                  "y=\"%.1f\">tensor</text>",
                  x_at(k, fp32 / memory), WIDTH - RIGHT, y_at(k, fp32), y_at(k, fp32),
                  WIDTH - RIGHT, y_at(k, fp32) - 3, WIDTH - RIGHT, y_at(k, tensor) - 4);
}

static void axes(const Box *k, Buffer *b)
{
    for (int e = (int)ceil(k->x0); e <= (int)k->x1; e++)
        buffer_printf(b, "<text class=\"t mid\" x=\"%.1f\" y=\"%d\">%g</text>", x_at(k, pow(10, e)),
                      HEIGHT - 24, pow(10, e));
    for (int e = (int)ceil(k->y0); e <= (int)k->y1; e++)
        buffer_printf(b,
                      "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text "
                      "class=\"t end\" x=\"%d\" y=\"%.1f\">%g</text>",
                      LEFT, WIDTH - RIGHT, y_at(k, pow(10, e)), y_at(k, pow(10, e)), LEFT - 5,
                      y_at(k, pow(10, e)) + 4, pow(10, e - 12));
    buffer_printf(b, "<text class=\"t end\" x=\"%d\" y=\"%d\">flops a byte of DRAM</text>",
                  WIDTH - RIGHT, HEIGHT - 6);
}

static void roofline(const ReportTask *t, const char *device, Buffer *b)
{
    double x[2], y[2];
    const Profile *p = strncmp(device, "sim:", 4) ? NULL : profile_find(device + 4, NULL);
    int best = place(&t->best, t->time_us, &x[1], &y[1]),
        base = place(&t->baseline, t->baseline_us, &x[0], &y[0]);
    if (!p || !best) return;
    Box k = {-1, 3, 9, 15.2};
    for (int i = base ? 0 : 1; i < 2; i++) {
        k.x0 = fmin(k.x0, floor(log10(x[i])));
        k.x1 = fmax(k.x1, ceil(log10(x[i])));
        k.y0 = fmin(k.y0, floor(log10(y[i])));
    }
    buffer_printf(b,
                  "<div class=\"roofline\"><h4>Roofline, Tflop/s</h4><svg viewBox=\"0 0 %d %d\" "
                  "role=\"img\" aria-label=\"Roofline of %s\">",
                  WIDTH, HEIGHT, t->task->name);
    axes(&k, b);
    roofs(p, &k, b);
    if (base)
        buffer_printf(
            b,
            "<circle class=\"base\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>baseline: %.3g "
            "flops a byte, %.3g Tflop/s</title></circle>",
            x_at(&k, x[0]), y_at(&k, y[0]), x[0], y[0] / 1e12);
    buffer_printf(b,
                  "<circle class=\"best\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>best: %.3g flops "
                  "a byte, %.3g Tflop/s</title></circle></svg></div>\n",
                  x_at(&k, x[1]), y_at(&k, y[1]), x[1], y[1] / 1e12);
}

/* ---- the costliest lines ---- */

static void lines(const ReportTask *t, Buffer *b)
{
    if (!t->n_lines) return;
    buffer_puts(b, "<div class=\"lines\"><h4>Costliest lines</h4><ol>\n");
    for (int i = 0; i < t->n_lines; i++) {
        const char *p = t->source;
        for (int n = atoi(t->lines[i] + strlen("line ")); n > 1 && p; n--)
            p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
        buffer_puts(b, "<li>");
        html_text(b, t->lines[i]);
        if (p) {
            p += strspn(p, " \t");
            size_t n = strcspn(p, "\r\n");
            buffer_puts(b, "<br><code>");
            html_escape(b, p, n < 100 ? n : 100);
            buffer_puts(b, "</code>");
        }
        buffer_puts(b, "</li>\n");
    }
    buffer_puts(b, "</ol></div>\n");
}

void kernel_figures(const Report *r, const ReportTask *t, Buffer *b)
{
    if (!t->source) return;
    buffer_puts(b, "<div class=\"figures\">\n");
    lines(t, b);
    peak_table(t, b);
    roofline(t, r->device, b);
    buffer_puts(b, "</div>\n");
}
