/* Notes of the report while a run is read: its input files with their configurations, and the messages
 * of what failed. */
#ifndef REPORT_LOAD_NOTES_H
#define REPORT_LOAD_NOTES_H

#include "report/report.h"

void notes_input(Report *r, const char *path, const ArtifactReader *a);
/* Opens the artifact for its header. */
int notes_file(Report *r, const char *path, Error *err);
void notes_failure(Report *r, Outcome outcome, const View *verdict);
/* Counts a sample whose endpoint failed. Its verdict says only that there was no code. */
void notes_unanswered(Report *r);
/* By outcome, then the most frequent first. */
void notes_sort(Report *r);

#endif
