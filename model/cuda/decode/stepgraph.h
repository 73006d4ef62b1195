/* One step of decoding on the device, as a graph for each bucket of rows. What goes in and comes
 * out lies in pinned memory; the calls are asynchronous, ops->status waits. */
#ifndef MODEL_CUDA_DECODE_STEPGRAPH_H
#define MODEL_CUDA_DECODE_STEPGRAPH_H

#include "model/core/decoder.h"
#include "model/cuda/decode/step_kernels.h"

/* In host memory: that of the next call. */
typedef struct {
    double *u;          /* [rows] */
    int32_t *ids, *pos; /* [rows] */
    int32_t *table;     /* [rows][ld] */
} StepInput;

/* An adapter's matrices as the kernels want them: A [r][k] and B [n][r] of all parts, each
 * beginning at a multiple of 16; 0 where there is none. */
typedef struct {
    Num *a, *b;
    int r; /* 0: none */
} Adapter;

typedef struct {
    Adapter qkv, o, gate_up, down;
} LayerAdapters;

enum { BUCKETS_MAX = 60 };

typedef struct {
    const Model *model;
    int rows, ld, longest; /* most rows, padded to a bucket; pages and tokens of a row at most */
    DrawRows law;
    Pages pages;            /* data is the caller's to set, and released here */
    LayerAdapters *adapter; /* [layers], or NULL */
    void *arena;
    Num *normed, *q, *att, *act, *low;
    float *x, *parts, *attend, *logits, *prompt_logits;
    void *draw;
    int32_t *prompt_table;
    char *input;        /* u, ids, pos, table */
    int32_t *out_ids;   /* and log-probabilities after them */
    char *host_input;   /* pinned, as on the device */
    int32_t *drawn_ids; /* pinned, as on the device */
    float *drawn_logp;
    CuGraphExec graph[BUCKETS_MAX];
} StepGraphs;

/* What one takes of the device, but for the pages. */
size_t stepgraph_bytes(const Model *m, const DecoderPlan *plan, int ld);
int stepgraph_init(StepGraphs *g, const Model *m, const DecoderPlan *plan, int ld, Error *err);
void stepgraph_release(StepGraphs *g);

/* Waits for nothing: the last call must be over. */
StepInput stepgraph_input(const StepGraphs *g);
void stepgraph_prompt(StepGraphs *g, const Num *last); /* logits of a prompt's last hidden state */
void stepgraph_first(StepGraphs *g, int n);            /* n draws from them */
void stepgraph_run(StepGraphs *g, int n);

#endif
