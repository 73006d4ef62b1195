/* What a drawn kernel is, in the words of an engineer: the two short texts of a teacher's answer. A mistake
 * is not said. */
#ifndef GENERATE_DRAW_DRAWN_WORDS_H
#define GENERATE_DRAW_DRAWN_WORDS_H

#include "generate/draw/draw.h"

enum { DRAW_WORDS = 200 }; /* bytes of a text; a sentence for which there is no room is left out */

/* analysis: what bounds the kernels, and how they read. design: launches, and the genes of each kernel. */
void draw_analysis(const Drawn *d, char out[DRAW_WORDS]);
void draw_design(const Drawn *d, char out[DRAW_WORDS]);

#endif
