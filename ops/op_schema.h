/* Argument schemas as ATen writes them. Each is read once. */
#ifndef OPS_OP_SCHEMA_H
#define OPS_OP_SCHEMA_H

#include "ops/op.h"

/* type: "Tensor", "Operand" (a tensor or a number), "int", "float", "Scalar", "bool", "ScalarType",
 * "str", "Any", "Tensor[]", "int[]". An int[N] takes one int for all N. */
typedef struct {
    char type[16], name[24], fallback[24];
    int optional, list, count, required, keyword_only;
} SchemaParameter;

/* A schema that was read. It stays with the process; threads share it. */
typedef struct {
    const char *text;
    int n;
    SchemaParameter p[OP_MAX_ARGS];
} Schema;

/* The schema of an operator; NULL: it is malformed, or has too many parameters. */
const Schema *schema_of(const Op *op, Error *err);

/* Checks a value against a parameter and widens it: an int for a float, one int for int[N]. */
int schema_accept(const SchemaParameter *p, OpValue *v, Error *err);
int schema_default(const SchemaParameter *p, OpValue *v, Error *err);

#endif
