/* The manifest of a model directory: the artifact that names every file in it with its digest.
 * Written last, it is the make target, and its payload digest names the model in the inputs of what
 * is made from it. */
#ifndef STAGES_DATA_MANIFEST_H
#define STAGES_DATA_MANIFEST_H

#include "artifacts/artifact.h"

/* dir/manifest.qa of the .json, .safetensors, .jinja and .txt files in dir. */
int manifest_write(const char *dir, const ArtifactSpec *spec, Error *err);
/* Before a file of dir changes: a manifest that stayed would vouch for files that are half of one
 * model and half of another. */
int manifest_remove(const char *dir, Error *err);
/* The files of from's model in dir too, as hard links where that can be, and dir's manifest. */
int manifest_carry_over(const char *from, const char *dir, const ArtifactSpec *spec, Error *err);
/* dir's model becomes an input of what is made from it. */
int manifest_input(const char *dir, ArtifactSpec *spec, Error *err);
/* Whether dir is what the spec would make again, as artifact_same says. */
int manifest_same(const char *dir, const ArtifactSpec *spec);
/* The payload digest of dir/manifest.qa, hex: the name of what is there. */
int manifest_digest(const char *dir, char hex[DIGEST_HEX], Error *err);

#endif
