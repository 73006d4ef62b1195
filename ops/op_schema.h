/* Argument schemas as ATen writes them, one parameter at a time. */
#ifndef OPS_OP_SCHEMA_H
#define OPS_OP_SCHEMA_H

#include "ops/op.h"

/* type: "Tensor", "Operand" (a tensor or a number), "int", "float", "Scalar", "bool", "ScalarType",
 * "str", "Any", "Tensor[]", "int[]". An int[N] takes one int for all N. */
typedef struct {
    char type[16], name[24], fallback[24];
    int optional, list, count, required, keyword_only;
} SchemaParameter;

/* Advances *at past one parameter. 1: one was read; 0: the end; -1: the schema is malformed. */
int schema_next(const char **at, int *keyword_only, SchemaParameter *p, Error *err);

/* Checks a value against a parameter and widens it: an int for a float, one int for int[N]. */
int schema_accept(const SchemaParameter *p, OpValue *v, Error *err);
int schema_default(const SchemaParameter *p, OpValue *v, Error *err);

#endif
