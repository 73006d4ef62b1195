/* One step of decoding on the device, as one graph per bucket of rows. Inputs and outputs are in
 * pinned memory. The calls are asynchronous, and ops->status waits. */
#ifndef MODEL_CUDA_DECODE_STEPGRAPH_H
#define MODEL_CUDA_DECODE_STEPGRAPH_H

#include "model/core/decoder.h"
#include "model/cuda/decode/step_kernels.h"

/* The input of the next call, in host memory. */
typedef struct {
    double *u;          /* [rows] */
    int32_t *ids, *pos; /* [rows] */
    int32_t *table;     /* [rows][ld] */
} StepInput;

/* The matrices of an adapter in the layout of the kernels: A [r][k] and B [n][r] of all parts. The
 * columns of each part begin at a multiple of 16, with 0 between. */
typedef struct {
    Num *a, *b;
    int r; /* 0: no adapter */
} Adapter;

typedef struct {
    Adapter qkv, o, gate_up, down;
} LayerAdapters;

enum { BUCKETS_MAX = 60 };

typedef struct {
    const Model *model;
    /* rows: at most, rounded up to a bucket; ld, longest: pages and tokens of a row, at most */
    int rows, ld, longest;
    DrawRows law;
    Pages pages;            /* the caller sets data, and stepgraph_release releases it */
    LayerAdapters *adapter; /* [layers], or NULL */
    void *arena;
    Num *normed, *q, *att, *act, *low;
    float *x, *parts, *attend, *logits, *prompt_logits;
    void *draw;
    int32_t *prompt_table;
    char *input;        /* u, ids, pos, table */
    int32_t *out_ids;   /* followed by the log-probabilities */
    char *host_input;   /* pinned, with the layout on the device */
    int32_t *drawn_ids; /* pinned, with the layout on the device */
    float *drawn_logp;
    CuGraphExec graph[BUCKETS_MAX];
} StepGraphs;

/* Returns the device memory of a StepGraphs, without the pages. */
size_t stepgraph_bytes(const Model *m, const DecoderPlan *plan, int ld);
int stepgraph_init(StepGraphs *g, const Model *m, const DecoderPlan *plan, int ld, Error *err);
void stepgraph_release(StepGraphs *g);

/* Does not wait: the last call must be complete. */
StepInput stepgraph_input(const StepGraphs *g);
/* logits of a prompt, from its last hidden state */
void stepgraph_prompt(StepGraphs *g, const Num *last);
void stepgraph_first(StepGraphs *g, int n); /* n draws from the logits of the prompt */
void stepgraph_run(StepGraphs *g, int n);

#endif
