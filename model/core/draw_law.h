/* The law by which a token is drawn from a row of logits. */
#ifndef MODEL_CORE_DRAW_LAW_H
#define MODEL_CORE_DRAW_LAW_H

/* What is left out one after another: banned ids; all but the top_k likeliest; of these all but the
 * fewest likeliest that hold top_p of their mass; of these what is less than min_p times as likely
 * as the likeliest. Of equally likely ids the smaller one goes before. */
typedef struct {
    float temperature; /* 0: the likeliest token, logp at temperature 1 */
    float top_p;       /* 1: off */
    int vocab;
    const int *banned; /* ids, at least one other is left */
    int n_banned;
    int top_k;   /* 0: off */
    float min_p; /* 0: off */
} DrawLaw;

#endif
