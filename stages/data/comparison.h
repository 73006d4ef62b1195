/* The sentence with which an answer to a contrastive prompt begins: "code2 is faster than code1".
 * It is held against the scores that the prompt shows. */
#ifndef STAGES_DATA_COMPARISON_H
#define STAGES_DATA_COMPARISON_H

/* NONE: the prompt shows fewer than two kernels. SILENT: the answer has no such sentence, or it
 * names a kernel that is not shown. TIE: the two have the same score as shown. */
typedef enum {
    COMPARISON_NONE,
    COMPARISON_SILENT,
    COMPARISON_TIE,
    COMPARISON_RIGHT,
    COMPARISON_WRONG
} Comparison;

enum { COMPARISON_MAX = 8 }; /* kernels of a prompt that are read */

/* Reads the titles "// codeN (score S)" of a prompt. Returns how many there are, at most
 * COMPARISON_MAX; score[i] belongs to code i + 1. */
int comparison_scores(const char *prompt, double score[COMPARISON_MAX]);
/* Judges the first such sentence of an answer. */
Comparison comparison_judge(const char *prompt, const char *answer);

#endif
