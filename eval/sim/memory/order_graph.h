/* The nodes of what blocks of a launch know of each other (order.h), and the places in memory that
 * have one. 0 is no node. */
#ifndef EVAL_SIM_MEMORY_ORDER_GRAPH_H
#define EVAL_SIM_MEMORY_ORDER_GRAPH_H

#include "eval/sim/memory/order.h"

/* An earlier access: is it covered? several: by any warp of the block. */
typedef struct {
    uint64_t block, position;
    int warp, several;
} OrderAccess;

typedef struct {
    uint32_t before[2]; /* nodes, or 0 */
    uint32_t covers;    /* 1 + index of a release's positions, one for each warp; 0: a union */
    uint32_t visit;     /* the last query that has come here */
    uint32_t next;      /* of a memo: the next release of the same block */
    uint32_t serial, known, seen; /* the warps of a block that have taken it, in each way */
    uint64_t block;               /* of a release */
} OrderNode;

typedef struct {
    uint64_t key; /* 1 + a word of the arena; 0: free */
    uint32_t node;
} OrderPlace;

/* A query that has found a release: from the node, for accesses with this tag (shadow_global.c) but for the
 * bytes. Nodes do not change, so that it finds it again. */
typedef struct {
    uint64_t tag;
    uint32_t from;
} OrderAnswer;
enum { ORDER_FOUND = 1 << 12 };

struct OrderGraph {
    OrderNode *nodes; /* from 1 on */
    uint32_t n, cap;
    uint64_t *positions;
    size_t n_positions, cap_positions;
    OrderPlace *places; /* a hash table */
    size_t n_places, cap_places;
    uint64_t lo, hi; /* words among which all places are */
    int n_warps;
    int lost;         /* there are too many nodes: what a fence released is known to all */
    uint32_t serial;  /* of the block that began last */
    uint32_t cluster; /* what the blocks of the running cluster have told each other */
    OrderAnswer found[ORDER_FOUND]; /* queries that found something, by a hash */
    uint32_t visit, *queue;
    uint32_t cap_queue;
    /* The releases that the last long query found, by block: a hash table of nodes. */
    uint32_t memo_from, *memo;
    size_t cap_memo;
};

void order_graph_clear(OrderGraph *g, int n_warps);
void order_graph_free(OrderGraph *g);
/* Return a node, or 0 when there are too many. */
uint32_t order_node(OrderGraph *g, uint64_t block, const uint64_t *positions, uint32_t before);
uint32_t order_join(OrderGraph *g, uint32_t a, uint32_t b);

uint32_t order_place(const OrderGraph *g, uint64_t word);
void order_set_place(OrderGraph *g, uint64_t word, uint32_t node);

/* Can a release that covers the access be reached? *steps: nodes that were looked at. */
int order_reaches(OrderGraph *g, uint32_t from, const OrderAccess *a, int64_t *steps);

#endif
