/* The cells of an ablation, arms by seeds, and the table of its arms with paired intervals. */
#ifndef LAB_ABLATION_H
#define LAB_ABLATION_H

#include "base/buffer.h"
#include "base/error.h"

enum { ABLATION_MAX_ARMS = 32, ABLATION_MAX_SEEDS = 64 };
enum {
    ABLATION_SUCCESS,
    ABLATION_BEST8,
    ABLATION_BEST,
    ABLATION_COMPARED,
    ABLATION_GAP8,
    ABLATION_GAP,
    ABLATION_VALUES
};

/* One run's figures over its train tasks. */
typedef struct {
    int there;                     /* 0: the run is missing or not finished */
    double value[ABLATION_VALUES]; /* see ablation_cell_read; NAN: it has none */
    long evaluations;              /* samples of stage 3's rounds */
} AblationCell;

/* Reads a run's folder:
 *   success  share of the final model's samples that are correct
 *   best8    geometric mean over the tasks of the expected best score of 8 of its samples, at least
 *            0.01 each; fewer samples than 8 count as all
 *   best     geometric mean over the tasks of the run's best score, from the pool
 *   compared share of right comparisons in stage 3's rounds
 *   gap8     gap closed by the final model's samples, best of 8 (lab/gap.h); NAN where the
 *            run has no lab/full/pool.qa, which LAB_WITHHOLD=1 makes
 *   gap      gap closed by the run's pool
 * A folder without these files gives there = 0. A damaged file is an error. */
int ablation_cell_read(const char *run, AblationCell *out, Error *err);

typedef struct {
    const char *const *arms, *const *seeds;
    int n_arms, n_seeds;
} AblationNames;

/* cells[arm * n_seeds + seed]. Each value is a mean over the arm's seeds, with the mean difference
 * to the first arm and its 95% interval over the seeds that both have (Student's t; at least 2). A
 * missing cell is named. */
void ablation_table(const AblationCell *cells, const AblationNames *of, Buffer *out);

/* Half the 95% interval of the mean of n values; 0 when n < 2. */
double ablation_half_interval(const double *v, int n, double *mean);

#endif
