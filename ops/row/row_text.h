/* Lists of operands for text_begin in which no name is twice. */
#ifndef OPS_ROW_ROW_TEXT_H
#define OPS_ROW_ROW_TEXT_H

typedef struct {
    char text[256]; /* "x0 x1 t0 y0" */
} RowOperands;

void row_operand(RowOperands *o, char kind, int index);
void row_operand_named(RowOperands *o, const char *name); /* "": nothing */

#endif
