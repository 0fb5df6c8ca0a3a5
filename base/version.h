/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_BASE_VERSION_H
#define SAMPLED_BASE_VERSION_H

#define SAMPLED_VERSION "0.1.0"

#endif
