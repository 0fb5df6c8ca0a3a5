/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/option_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/nearest.h"
#include "daemon/parse.h"
#include "exporters/format.h"
#include "exporters/push_request.h"
#include "sampler/sampler.h"

int option_read_pattern(void *pattern, const char *option, const char *text, struct fault *fault)
{
	struct pattern *p = pattern;
	char why[128];
	int err;

	pattern_release(p);
	err = regcomp(&p->regex, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &p->regex, why, sizeof(why));
		return fault_set(fault, -EINVAL, why, "%s %s: not a regular expression", option, text);
	}
	p->is_set = true;
	return 0;
}

const regex_t *pattern_regex(const struct pattern *pattern)
{
	return pattern->is_set ? &pattern->regex : NULL;
}

void pattern_release(struct pattern *pattern)
{
	if (pattern->is_set)
		regfree(&pattern->regex);
	pattern->is_set = false;
}

int option_read_thread(void *list, const char *option, const char *text, struct fault *fault)
{
	struct thread_list *threads = list;
	struct thread_filter *filter = &threads->items[threads->count];

	if (threads->count == THREAD_LIST_MAX)
		return fault_set(fault, -EINVAL, "", "%s: given more than %d times", option, THREAD_LIST_MAX);
	if (*text == '\0')
		return fault_set(fault, -EINVAL, "a thread's name or number", "%s: empty", option);
	*filter = (struct thread_filter){.name = text};
	if (parse_u64(text, &filter->tid) == 0)
		filter->name = NULL;
	threads->count++;
	return 0;
}

int option_read_percent(void *percent, const char *option, const char *text, struct fault *fault)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || !isfinite(value) || value < 0 || value > 100)
		return fault_set(fault, -EINVAL, "0 to 100", "%s %s: not a percentage", option, text);
	*(double *)percent = value;
	return 0;
}

int option_read_native(void *native, const char *option, const char *text, struct fault *fault)
{
	static const struct {
		const char *name;
		enum native_frames native;
	} choices[] = {
		{"all", NATIVE_ALL}, {"leaf", NATIVE_LEAF}, {"extensions", NATIVE_EXTENSIONS}, {"marks", NATIVE_MARKS}};
	enum native_frames *ret_native = native;

	if (!text) {
		*ret_native = NATIVE_CALLS;
		return 0;
	}
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (strcmp(text, choices[i].name) == 0) {
			*ret_native = choices[i].native;
			return 0;
		}
	return fault_set(fault, -EINVAL, "all, leaf, extensions or marks", "%s=%s: no such choice", option, text);
}

int option_read_push_type(void *type, const char *option, const char *text, struct fault *fault)
{
	enum push_type *ret_type = type, found = push_type_by_name(text);

	if (found == PUSH_TYPES)
		return fault_set(fault, -EINVAL, "pyroscope, pyroscope-push, parca or otlp", "%s %s: no such type",
		                 option, text);
	*ret_type = found;
	return 0;
}

int option_read_style(void *style, const char *option, const char *text, struct fault *fault)
{
	enum collapsed_style *ret_style = style;

	if (strcmp(text, "sampled") == 0)
		*ret_style = COLLAPSED_SAMPLED;
	else if (strcmp(text, "tachyon") == 0)
		*ret_style = COLLAPSED_TACHYON;
	else
		return fault_set(fault, -EINVAL, "sampled or tachyon", "%s %s: no such style", option, text);
	return 0;
}

int option_read_mode(void *mode, const char *option, const char *text, struct fault *fault)
{
	struct nearest near = {.word = text};
	char hint[64];

	for (unsigned i = 0; i < SAMPLE_MODES; i++) {
		if (strcmp(text, sample_mode_names[i]) == 0) {
			*(enum sample_mode *)mode = (enum sample_mode)i;
			return 0;
		}
		nearest_offer(&near, sample_mode_names[i]);
	}
	nearest_hint(&near, "", "wall, cpu, gil or exception", hint, sizeof(hint));
	return fault_set(fault, -EINVAL, hint, "%s %s: no such mode", option, text);
}
