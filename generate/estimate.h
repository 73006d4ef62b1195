/* The analytic model: the time of a kernel by its schedule, in microseconds of computing. It counts bytes of
 * DRAM and L2, instructions, what is in flight, and waves of blocks. It ranks schedules; the evaluators
 * judge. */
#ifndef GENERATE_ESTIMATE_H
#define GENERATE_ESTIMATE_H

#include "eval/sim/time/profile.h"
#include "generate/writer.h"

enum { ESTIMATE_RANKED = 12, ESTIMATE_OPS = 400 };

/* One choice for each gene of a kernel's text. */
typedef struct {
    int n, value[GENES];
    Gene gene[GENES];
    double us;
} GeneVector;

typedef struct {
    char of[GRAPH_NAME];    /* what the kernel writes */
    char ops[ESTIMATE_OPS]; /* the graph's operators that it computes: "add, rms_norm" */
    int launches;           /* a product has more than one */
    double us;              /* by its schedule, with a launch */
    double light_us;        /* of its bytes, each once, and of its launch */
    int n_ranked;
    GeneVector ranked[ESTIMATE_RANKED]; /* the fastest ones, those of a width once, in order */
} KernelEstimate;

/* What the model knows of a source. times_only: no schedules are ranked. */
typedef struct Estimate {
    const Profile *gpu;
    int times_only;
    int n;
    KernelEstimate *kernel; /* in the order of the source */
} Estimate;

double point_work(const char *text); /* instructions of a point, by its text */
/* Adds a kernel whose schedule is chosen. */
void estimate_add(Estimate *m, const Writer *w);
/* Adds a kernel of a product: k has a step of a kept node. */
void estimate_add_product(Estimate *m, const Kernel *k, double us, int launches);
/* Adds one of a kept node that kernels compute. */
void estimate_add_call(Estimate *m, Nodes *n, int node, double us, int launches);
void estimate_clear(Estimate *m);
/* A node that a kernel computes for each of its elements, though it has far fewer of its own: one that should
 * lie in memory before; -1: none is worth a kernel. */
int estimate_costly(const Kernel *k);

#endif
