/* The law by which a token is drawn from a row of logits. */
#ifndef MODEL_CORE_DRAW_LAW_H
#define MODEL_CORE_DRAW_LAW_H

/* Ids are left out in this order: the banned ids; all but the top_k most probable; of these, all
 * but the smallest set of the most probable that holds top_p of their mass; of these, ids less than
 * min_p times as probable as the most probable one. Equal probabilities are ordered by id, the
 * smaller id first. */
typedef struct {
    float temperature; /* 0: the most probable token, with logp at temperature 1 */
    float top_p;       /* 1: off */
    int vocab;
    const int *banned; /* ids; at least one other id is left */
    int n_banned;
    int top_k;   /* 0: off */
    float min_p; /* 0: off */
} DrawLaw;

#endif
