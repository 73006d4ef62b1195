/* The manifest of a model directory, DIR/manifest.qa: an artifact that lists the model's files with
 * their digests. It is written last, so a directory with a manifest holds a whole model. It is the
 * target of the make rule, and its payload digest stands for the model in the inputs of other
 * artifacts. */
#ifndef ARTIFACTS_MANIFEST_H
#define ARTIFACTS_MANIFEST_H

#include "artifacts/artifact.h"

/* Writes the manifest of the .json, .safetensors, .jinja and .txt files in dir. */
int manifest_write(const char *dir, const ArtifactSpec *spec, Error *err);
/* Removes the manifest. The caller does this before it changes a file of dir: the old manifest must
 * not stand beside files of two models. */
int manifest_remove(const char *dir, Error *err);
/* Empties dir, gives it the files of the model in `from` and writes its manifest. The files are
 * hard links where the file system allows it, else copies. */
int manifest_carry_over(const char *from, const char *dir, const ArtifactSpec *spec, Error *err);
/* Checks the manifest of dir and the digest of every file that it names, and gives their number in
 * `files` unless it is NULL. Damage, also a file that is not there, is ERROR_CORRUPT. */
int manifest_verify(const char *dir, long *files, Error *err);
/* Does the same before a model is opened, once a process. A directory without a manifest, such as a
 * published checkpoint, passes. */
int manifest_check(const char *dir, Error *err);
/* Adds the model in dir to the inputs of spec. */
int manifest_input(const char *dir, ArtifactSpec *spec, Error *err);
/* Whether dir already holds what spec would make (artifact_same of the manifest). */
int manifest_same(const char *dir, const ArtifactSpec *spec);
/* Reads the payload digest of the manifest, in hex. */
int manifest_digest(const char *dir, char hex[DIGEST_HEX], Error *err);

#endif
