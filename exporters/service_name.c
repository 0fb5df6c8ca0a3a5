/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/service_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *service_name(const char *command)
{
	char *words = strdup(command), *save = NULL, *word, *found = NULL, *name;
	bool is_python = false;

	if (!words)
		return NULL;
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!found) {
			found = word;
			is_python = strncmp(base_name(word), "python", 6) == 0;
			if (!is_python)
				break;
		} else if (strcmp(word, "-c") == 0) {
			break;
		} else if (word[0] !=
		           '-') { /* an option's own argument passes for the script: good enough for a name */
			found = word;
			break;
		}
	}
	name = strdup(found && base_name(found)[0] != '\0' ? base_name(found) : "unknown_service");
	free(words);
	return name;
}
