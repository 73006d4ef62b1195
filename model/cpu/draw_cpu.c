/* Draw from the logits of one row. The softmax uses vectors, and sums have a fixed order. */
#include "model/cpu/cpu_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/cpu/simd.h"

enum { RUN = 64 }; /* probabilities are summed in runs, so that the search reads few of them */

/* probs = e^((z - top) inverse). Returns their sum. */
static double weights_of(const float *z, int vocab, float *probs, float inverse, float top)
{
    Vec sum = {0};
    double tail = 0;
    for (int i = 0; i < vocab; i += LANES) {
        int left = vocab - i;
        Vec x = (v_get(z + i, left) - top) * inverse, e = v_exp(x);
        e = v_select(x < -87.0f, (Vec){0}, e); /* v_exp stops at its smallest value */
        v_put(probs + i, e, left);
        if (left >= LANES)
            sum += e;
        else
            for (int j = 0; j < left; j++) tail += (double)e[j];
    }
    return (double)v_sum(sum) + tail;
}

static double run_sum(const float *p, int n)
{
    Vec sum = {0};
    for (int i = 0; i < n; i += LANES) sum += v_get(p + i, n - i);
    return (double)v_sum(sum);
}

/* Returns the first id at which the running sum exceeds u times the total. */
static int32_t draw_in_order(const float *probs, int vocab, double u)
{
    double total = 0, at = 0;
    for (int i = 0; i < vocab; i += RUN)
        total += run_sum(probs + i, vocab - i < RUN ? vocab - i : RUN);
    double want = u * total;
    int32_t last = -1;
    for (int i = 0; i < vocab; i += RUN) {
        int n = vocab - i < RUN ? vocab - i : RUN;
        double sum = run_sum(probs + i, n);
        if (at + sum > want || i + RUN >= vocab)
            for (int j = i; j < i + n; j++) {
                at += (double)probs[j];
                if (probs[j] > 0) last = j;
                if (at > want && last >= 0) return last;
            }
        else
            at += sum;
    }
    if (last < 0) /* rounding led to the last run, and it holds only zeros */
        for (last = vocab - 1; last > 0 && probs[last] <= 0; last--) {
        }
    return last;
}

/* Order by descending weight, then by ascending id. */
static int by_weight(const void *a, const void *b)
{
    const DrawCandidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

int draw_sorts(const DrawLaw *law)
{
    return law->temperature > 0 &&
           (law->top_p < 1 || law->min_p > 0 || (law->top_k > 0 && law->top_k < law->vocab));
}

/* Draw from the most probable ids that the law keeps. */
static int32_t draw_sorted(const DrawLaw *law, const float *probs, double u, DrawCandidate *order)
{
    int n = 0;
    double total = 0, kept = 0;
    for (int i = 0; i < law->vocab; i++)
        if (probs[i] > 0) {
            order[n++] = (DrawCandidate){probs[i], i};
            total += (double)probs[i];
        }
    if (!n) return draw_in_order(probs, law->vocab, u);
    qsort(order, (size_t)n, sizeof *order, by_weight);
    if (law->top_k && law->top_k < n) {
        n = law->top_k;
        total = 0;
        for (int i = 0; i < n; i++) total += (double)order[i].weight;
    }
    double want = law->top_p < 1 ? (double)law->top_p * total : INFINITY,
           threshold = (double)law->min_p * (double)order[0].weight;
    int keep = 0;
    while (keep < n && kept < want && (double)order[keep].weight >= threshold)
        kept += (double)order[keep++].weight;
    if (!keep) keep = 1;
    double at = 0;
    for (int i = 0; i < keep; i++) {
        at += (double)order[i].weight;
        if (at > u * kept) return order[i].id;
    }
    return order[keep - 1].id;
}

static float top_of(const float *z, int vocab)
{
    int whole = vocab & -LANES;
    Vec tops = v_splat(-INFINITY);
    for (int i = 0; i < whole; i += LANES) tops = v_max(v_load(z + i), tops);
    float top = v_top(tops);
    for (int i = whole; i < vocab; i++) top = z[i] > top ? z[i] : top;
    return top;
}

/* Set the probabilities of banned ids to 0. If the remaining ids are negligible beside a banned
 * one, compute their probabilities again relative to their own maximum. */
static void clear_banned(const DrawLaw *law, const float *logits, float *probs, float inverse)
{
    const float negligible = 1e-17f;
    for (int i = 0; i < law->n_banned; i++) probs[law->banned[i]] = 0;
    if (!law->n_banned || top_of(probs, law->vocab) > negligible) return;
    memcpy(probs, logits, (size_t)law->vocab * sizeof *probs);
    for (int i = 0; i < law->n_banned; i++) probs[law->banned[i]] = -INFINITY;
    weights_of(probs, law->vocab, probs, inverse, top_of(probs, law->vocab));
}

int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs,
                   DrawCandidate *order, float *logp)
{
    int greedy = law->temperature == 0;
    float inverse = greedy ? 1.0f : 1.0f / law->temperature, top = top_of(logits, law->vocab);
    double sum = weights_of(logits, law->vocab, probs, inverse, top);
    clear_banned(law, logits, probs, inverse);
    int32_t id;
    if (greedy) {
        id = 0;
        for (int32_t i = 1; i < law->vocab; i++)
            if (probs[i] > probs[id]) id = i;
    } else if (draw_sorts(law))
        id = draw_sorted(law, probs, u, order);
    else
        id = draw_in_order(probs, law->vocab, u);
    *logp = (float)((double)((logits[id] - top) * inverse) - log(sum));
    return id;
}
