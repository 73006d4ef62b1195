/* Restricted Damerau-Levenshtein distance over two rows and the one before them. */
#include "base/suggest.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { LENGTH_MAX = 64, WHOLE = 2, CASE = 1 };

static int least(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

static int substitution(char a, char b)
{
    if (a == b) return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? CASE : WHOLE;
}

/* In halves: a whole edit is 2. */
static int distance(const char *a, size_t na, const char *b, size_t nb)
{
    int rows[3][LENGTH_MAX + 1];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = WHOLE * (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *now = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        now[0] = WHOLE * (int)i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = least(above[j] + WHOLE, now[j - 1] + WHOLE,
                           above[j - 1] + substitution(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_above[j - 2] + WHOLE < now[j])
                now[j] = two_above[j - 2] + WHOLE;
        }
    }
    return rows[na % 3][nb];
}

const char *suggest_name(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t len = strlen(word);
    int best_distance = 0;
    if (!len || len > LENGTH_MAX) return NULL;
    for (int i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (other > LENGTH_MAX) continue;
        int d = distance(word, len, names[i], other), limit = WHOLE * (int)((other + 2) / 3);
        if (d <= limit && (!best || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
