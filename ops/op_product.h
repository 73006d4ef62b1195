/* Sums of products over two tensors, c = alpha sum_k a b + beta d, named as in an einsum: a letter is a
 * dimension, and letters of a and b that c lacks are summed over. Matrix products, linear layers and
 * attention are all described so. A letter falls into one of four groups: batch (in a, b and c), rows
 * (a and c), columns (b and c), depth (summed over). */
#ifndef OPS_OP_PRODUCT_H
#define OPS_OP_PRODUCT_H

#include "ops/op.h"

enum { PRODUCT_LETTERS = 64, PRODUCT_DIMS = 3 * OP_MAX_RANK };
typedef enum {
    PRODUCT_BATCH,
    PRODUCT_ROWS,
    PRODUCT_COLUMNS,
    PRODUCT_DEPTH,
    PRODUCT_GROUPS
} ProductGroup;
typedef enum { PRODUCT_A, PRODUCT_B, PRODUCT_C, PRODUCT_D, PRODUCT_OPERANDS } ProductOperand;

/* One operand: its name as in OpLaunch.arguments, its tensor, the letter of each dimension, and for the
 * reference its elements. d may have no tensor. A letter whose size is 1 in one operand only is
 * broadcast there. */
typedef struct {
    char name[8];
    const OpTensor *tensor;
    char letters[OP_MAX_RANK + 1];
    const double *data;  /* of a, b and d; c's are an argument of product_reference */
    const float *narrow; /* for product_elements, where data is NULL */
} ProductSide;

/* A group has the dimensions 0 to rank - 1, of sizes above 1; step[x][g][i] is how far operand x moves
 * along one of them. count[g] is the product of a group's sizes, 0 where one is 0. */
typedef struct {
    ProductSide side[PRODUCT_OPERANDS];
    double alpha, beta;
    int rank[PRODUCT_GROUPS];
    int64_t count[PRODUCT_GROUPS], size[PRODUCT_GROUPS][PRODUCT_DIMS];
    int64_t step[PRODUCT_OPERANDS][PRODUCT_GROUPS][PRODUCT_DIMS];
} Product;

/* Fills the groups from side[], alpha and beta. The steps are those of memory, or with `logical` those
 * of dense tensors in C order. Dimensions that can be one are made one. Where c's last dimension is
 * one of a's, a and b change places, so that columns are the dense dimension of c. */
void product_groups(Product *p, int logical);

/* Computes c; groups must be logical. d is not read where beta is 0. Each element is the sum in the
 * order of the depth, by one thread. */
void product_reference(const Product *p, double *c);

double product_flops(const Product *p);

/* 1: nothing is summed, and each element of c is one of a times one of b. */
int product_is_each(const Product *p);

/* What an inferred call sums, with the groups in memory. 0: it is no matrix product. */
int product_of_call(const OpCall *c, Product *out);

/* Single elements; groups must be logical. Where element i of c lies in operand x, without the depth;
 * what a term of the depth adds to it; and n elements themselves. */
int64_t product_place(const Product *p, ProductOperand x, int64_t i);
int64_t product_depth(const Product *p, ProductOperand x, int64_t term); /* of a term in a or b */
void product_elements(const Product *p, const int64_t *at, int64_t n, double *y);

/* Adds to sum[i] the products of a's terms and those of row i of b, in their order; rows of b are b_step
 * apart. */
enum { PRODUCT_TOGETHER = 8 }; /* the most rows: the terms of one sum wait for each other */
void product_rows(const double *a, int64_t terms, const double *b, int64_t b_step, int rows,
                  double *sum);

/* Tiles of a blocked product: acc[m][TILE_N] += a[m][k] b[k][n]. The rows of a are a_step apart, those
 * of b b_step. b has numbers in the columns up to the next multiple of TILE_LANES, of which nothing is
 * used. */
enum { TILE_M = 64, TILE_N = 128, TILE_LANES = 4 };
typedef struct {
    const double *a;
    int64_t a_step;
    int m, k, n, b_step;
} Tile;
void product_tile(const Tile *t, const double *b, double *acc);
void product_clear(int m, int n, double *acc); /* m rows, of n columns */

/* Products of two numbers: for fewer, threads wait longer for each other than they compute. */
enum { PRODUCT_WORTH_THREADS = 1 << 20 };

/* A panel is a b of at most TILE_N columns, whose rows are so far apart that they meet in no cache
 * line, and with the more terms the fewer columns it has: the rows of a are read in long runs. */
enum { PANEL_ELEMENTS = 1 << 14 };
typedef struct {
    int step, terms; /* their product is at most PANEL_ELEMENTS */
} Panel;
Panel product_panel(int n, int64_t depth);
void product_pad(const Panel *p, int n, double *b); /* zeros beyond n, in all terms */

/* Appends the tiled kernel; groups must be those of memory. */
int product_plain(const Product *p, OpPlain *out, Error *err);

/* As Op.route: a product of cuBLAS, or of cuBLASLt with a bias. Operands that it cannot read are copied
 * before it, and another addend is added by a kernel after it. 0: it is in double, or c is not dense. */
int product_route(const Product *p, const OpCall *c, OpRoute *out, Error *err);

#endif
