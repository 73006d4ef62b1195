/* Mutations: all the ways in which this module changes one thing of a right kernel. A mutation has a kind
 * (bound, guard, barrier, ...), a place (the line and column of what it changes, and a letter where there are
 * several of one kind) and the edits that make it. */
#ifndef LAB_MUTATE_MUTATIONS_H
#define LAB_MUTATE_MUTATIONS_H

#include "lab/mutate/cuda_tokens.h"

enum { MUTATION_EDITS = 2, MUTATION_PLACE = 32 };

typedef struct {
    size_t at, len; /* bytes of the original that go */
    char *text;     /* what comes instead; owned */
} Edit;

typedef struct {
    const char *kind; /* a constant */
    char place[MUTATION_PLACE];
    size_t at; /* bytes before the token of the place */
    int line;
    TokenPlace where;           /* of the plan: what it changes may leave the code as it is */
    Edit edits[MUTATION_EDITS]; /* in the order of the text */
    int n_edits;
} Mutation;

typedef struct {
    const Tokens *tokens;
    Mutation *at;
    int n;
    int large; /* a tensor of the task has 2^31 elements or more */
} Mutations;

/* All mutations of the tokens, in the order of the text. The tokens must outlive them. Release it. */
void mutations_find(const Tokens *t, int large, Mutations *out);
void mutations_release(Mutations *m);

/* The original with the mutation's edits. The caller frees it. */
char *mutation_apply(const Mutations *m, const Mutation *one);

/* ---- for the rules, which are in mutate_code.c and mutate_plan.c ---- */

/* A rule adds the mutations of its kind at token i. */
typedef void MutationRule(Mutations *m, int i);
typedef struct {
    unsigned places; /* TokenPlace bits */
    MutationRule *find;
} MutationRow;
extern const MutationRow mutation_code_rules[], mutation_plan_rules[];
extern const int mutation_n_code_rules, mutation_n_plan_rules;

/* Begin a mutation at token i. It stays valid until the next one begins. */
Mutation *mutation_begin(Mutations *m, const char *kind, int i);
/* Replace tokens [from, to) by the text; from == to: insert it before `from`. */
void mutation_edit(Mutations *m, int from, int to, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Both in one. */
void mutation_add(Mutations *m, const char *kind, int from, int to, const char *text);
/* The text of tokens [from, to) as printf's %.*s takes it. */
int mutation_length(const Mutations *m, int from, int to);

#endif
