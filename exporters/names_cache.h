/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of fetched files, each whole or not there, bounded together; and of what is not to be had, for a day. Every function takes -1 for no
 * directory: then files live in memory. */
#ifndef SAMPLED_EXPORTERS_NAMES_CACHE_H
#define SAMPLED_EXPORTERS_NAMES_CACHE_H

#include <stdbool.h>

/* $XDG_CACHE_HOME/sampled/debuginfod, or ~/.cache/…, made where it is not there, and brought within its bound. -1: there can be none. */
int cache_open(void);
/* A file for reading, or -1; *ret_missing: it was not to be had a while ago. */
int cache_find(int cache_fd, const char *key, bool *ret_missing);
void cache_note_missing(int cache_fd, const char *key);
/* A new file for writing, or -1. */
int cache_begin(int cache_fd, const char *key);
/* It is whole, and kept, or thrown away. Takes fd over; returns one for reading, or -1. */
int cache_end(int cache_fd, const char *key, int fd, bool whole);

#endif
