/* SPDX-License-Identifier: Apache-2.0 */
/* What a service is called, where nobody has named it. */
#ifndef SAMPLED_EXPORTERS_SERVICE_NAME_H
#define SAMPLED_EXPORTERS_SERVICE_NAME_H

/* The script or module that a command line (its words joined by blanks) runs, or its program, or "unknown_service"; freed by the caller. NULL: no
 * memory. */
char *service_name(const char *command);

#endif
