/* Symbolic sizes of an exported program: expressions over symbols, as PyTorch writes them in three ways:
 *
 *   Add(Symbol('s77', positive=True, integer=True), Integer(-1))     sizes (SymPy's srepr)
 *   (s77 - 1)//2                                                     sizes of older programs
 *   L['x'].size()[2] % 8 == 0                                        guards
 *
 * They become expressions of base/expr.h over axes. A symbol that is pinned is the number that it has
 * in the module. Division rounds down in PyTorch and toward 0 in C: the same where sizes are valid. */
#ifndef TASKS_IMPORT_SYMBOLIC_H
#define TASKS_IMPORT_SYMBOLIC_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { SYMBOLS_MAX = 256, SYMBOLIC_MAX_NODES = 512, SYMBOLIC_MAX_TEXT = 8192 };

typedef enum {
    SYM_INTEGER,
    SYM_REAL,
    SYM_SYMBOL,
    SYM_ADD,
    SYM_MUL,
    SYM_FLOOR_DIV,
    SYM_DIV,
    SYM_MOD,
    SYM_MAX,
    SYM_MIN,
    SYM_POW,
    SYM_FLOOR,
    SYM_CEIL,
    SYM_EQ,
    SYM_NE,
    SYM_LT,
    SYM_LE,
    SYM_AND,
    SYM_OR,
    SYM_NOT
} SymKind;

typedef struct {
    SymKind kind;
    int a, b; /* operands; of SYM_SYMBOL: a is the symbol */
    int64_t integer;
    double real;
} SymNode;

typedef struct Symbolic {
    SymNode *node; /* operands come before what uses them; the last one is the whole */
    int n;
} Symbolic;

typedef struct {
    char name[40];          /* "s77" */
    char axis[32];          /* its name in task.json */
    int64_t own, low, high; /* the module's own size, and what the module allows */
    int known;              /* own is known */
    int pinned;
    int one;               /* a batch, which may be 1, too, where PyTorch reasons about 2 or more */
    struct Symbolic *same; /* it is this expression over other symbols; NULL: it is free */
} Symbol;

typedef struct {
    Symbol *list;
    int n;
} Symbols;

int symbols_find(const Symbols *s, const char *name, size_t len);      /* or -1 */
int symbols_add(Symbols *s, const char *name, size_t len, Error *err); /* its index, or -1 */
void symbols_release(Symbols *s);

/* The size of a tensor's dimension in a guard: fills *text with its expression, or *number with text
 * NULL. -1: there is no such dimension. path: "x", or "tensors_0" of L['tensors'][0]. */
typedef int SymDimension(void *ctx, const char *path, int64_t d, const char **text,
                         int64_t *number);

/* Symbols that are not there yet are added. dimension NULL: none is known. Errors name the column. */
int symbolic_parse(const char *text, Symbols *s, SymDimension *dimension, void *ctx, Symbolic *out,
                   Error *err);
void symbolic_number(int64_t number, Symbolic *out);
void symbolic_release(Symbolic *e);

/* The value with values[symbol]; NULL: the module's own. -1: it overflows, divides by 0, or a symbol's
 * size is not known. is_real: *real is the value, else *integer. */
typedef struct {
    int is_real;
    int64_t integer;
    double real;
} SymValue;
int symbolic_value(const Symbolic *e, const Symbols *s, const int64_t *values, SymValue *out,
                   Error *err);
/* Sets used[symbol] for each symbol that is free; the number of those that were not set. */
int symbolic_uses(const Symbolic *e, const Symbols *s, char *used);
void symbolic_pin(const Symbolic *e, Symbols *s);
/* Makes a free symbol the same as node i of e, which must be of other symbols that do not depend on it
 * and have their own sizes. 0: it is not, or the sizes differ. */
int symbolic_equate(Symbols *s, int symbol, const Symbolic *e, int i);
/* Appends the expression. UNSUPPORTED: it has no form in integers; LIMIT: out is full. */
int symbolic_text(const Symbolic *e, const Symbols *s, Buffer *out, Error *err);

#endif
