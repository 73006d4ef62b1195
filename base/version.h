/* The version of Quern: the content of the file VERSION when base/version.c was compiled. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

extern const char quern_version[];

#endif
