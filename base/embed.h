/* Files of the source tree as constant texts of the program. The assembler reads them relative to make's
 * folder. The Makefile makes what includes this header depend on the texts in its folder and below. */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

/* Defines `const char symbol[]`, which ends with a zero byte. */
#define EMBED(symbol, file)                                                         \
    extern const char symbol[];                                                     \
    __asm__(".pushsection .rodata\n.balign 16\n.global " #symbol "\n" #symbol ":\n" \
            ".incbin \"" file "\"\n.byte 0\n.popsection\n");

#endif
