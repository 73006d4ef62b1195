/* Titles count only at the start of a line: a kernel cannot have such a line (policy/prompt.c). */
#include "stages/data/comparison.h"

#include <stdio.h>
#include <string.h>

int comparison_scores(const char *prompt, double score[COMPARISON_MAX])
{
    int n = 0;
    for (const char *p = prompt; p && n < COMPARISON_MAX; p = strchr(p, '\n'), p = p ? p + 1 : p) {
        int k;
        double s;
        if (sscanf(p, "// code%d (score %lf)", &k, &s) == 2 && k == n + 1) score[n++] = s;
    }
    return n;
}

Comparison comparison_judge(const char *prompt, const char *answer)
{
    double score[COMPARISON_MAX];
    int n = comparison_scores(prompt, score), a, b, end;
    if (n < 2) return COMPARISON_NONE;
    for (const char *p = answer; (p = strstr(p, "code")); p += 4) {
        end = 0;
        if (sscanf(p, "code%d is faster than code%d%n", &a, &b, &end) != 2 || !end) continue;
        if (a < 1 || b < 1 || a > n || b > n || a == b) return COMPARISON_SILENT;
        double gap = score[a - 1] - score[b - 1];
        return gap > 0 ? COMPARISON_RIGHT : gap < 0 ? COMPARISON_WRONG : COMPARISON_TIE;
    }
    return COMPARISON_SILENT;
}
