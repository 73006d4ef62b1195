/* What the files of definedness share. definedness.c finds the registers that may have no value, and
 * emits what follows them. Words of parameter variables count as registers, behind those of the text. */
#ifndef EVAL_SIM_DECODE_DEFINEDNESS_H
#define EVAL_SIM_DECODE_DEFINEDNESS_H

#include "eval/sim/decode/decode_internal.h"

enum {
    STEPS_MAX = 50000000, /* of the search and of the closure, for hostile code */
    OPERANDS_MAX = 250    /* registers of one instruction */
};

struct Definedness {
    int n_registers, base[REG_CLASSES];
    const PtxFunction *p;
    int first_word, n_words, n_parameters; /* of parameter variables; first the function's own */
    uint32_t *slot, *origin; /* by register: 0 when it is always defined; PTX instruction */
    int *set_by;       /* by register: 1 + the mov that sets it, if nothing else does; or <= 0 */
    int shared, local; /* an undefined value may be stored there */
    int64_t steps;
};

typedef struct {
    int n;
    int reg[OPERANDS_MAX];
} Registers;

static inline int definedness_is(const PtxInst *in, const char *op)
{
    return !strcmp(in->op, op);
}

/* The register of an operand, or -1: a constant, or no destination. */
static inline int definedness_register(const Definedness *k, const PtxOperand *o)
{
    return o->kind == OPND_REG && o->cls < REG_128 ? k->base[o->cls] + (int)o->reg : -1;
}

void definedness_add(Registers *r, int reg);
void definedness_dests(const Definedness *k, const PtxInst *in, Registers *out);
/* The registers that are read as values, without the guard; and those of addresses. */
void definedness_values(const Definedness *k, const PtxInst *in, Registers *out);
void definedness_addresses(const Definedness *k, const PtxInst *in, Registers *out);
/* Gives a register without a value a slot; origin: the instruction that reads it first. */
void definedness_give_slot(Decoder *d, int reg, uint32_t origin);

/* definedness_seeds.c: gives slots to the registers that may be read before they are set. */
void definedness_seeds(Decoder *d, const unsigned char *leader);

/* definedness_flow.c. A register has four parts, each a quarter of its bits. Of part p of destination i,
 * flow[(i * 4 + p) * n_values + j] says which parts of value j it depends on, a bit each. NULL: each
 * part depends on all. */
uint8_t *definedness_flow(Decoder *d, const Registers *dests, const Registers *values);

/* definedness_flow.c also knows the accesses to parameter variables of functions and calls. */
typedef struct {
    int first, n;         /* words, as registers */
    int at, bytes, items; /* the first byte in the first word; bytes of an item */
    int is_store;
} ParamAccess;

/* Returns 1 when a ld or st is one, 0 when it is not. */
int definedness_param(const Definedness *k, const PtxInst *in, ParamAccess *out);
/* Adds the words that it touches. */
void definedness_words(const Definedness *k, const PtxInst *in, Registers *out);
/* Adds the words of the arguments of a call, or of its results. */
void definedness_arguments(const Definedness *k, const PtxInst *in, int results, Registers *out);

#endif
