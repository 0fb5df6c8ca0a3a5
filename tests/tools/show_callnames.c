/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what is found of the names by which code objects of a process call: show_callnames PID < ADDRESSES, hexadecimal ones, one a line. For each
 * name: the code object, the first and the last offset in bytes, the kind (enum callname_kind), whether it is single, and, hexadecimal, the hash, that of the last argument, and the code of the generator expression. Exit: 0,
 * else the errno of the failure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/callnames.h"
#include "sampler/codes.h"
#include "sampler/discover.h"

static int show(const struct pyabi *abi, const struct remote *r, struct codes *codes, raddr_t addr)
{
	struct code *code;
	struct callname *names = NULL;
	uint8_t *bytes;
	int err, count = 0;

	codes_new_tick(codes);
	err = codes_load(codes, r, addr, 0, &code);
	if (err)
		return err;
	bytes = malloc(code->bytecode_bytes);
	if (!bytes)
		return -ENOMEM;
	err = remote_read(r, code->bytecode, bytes, code->bytecode_bytes);
	if (err == 0)
		count = callnames_find_all(abi, r, code->names, code->consts, code->owner, bytes, code->bytecode_bytes, &names);
	for (int i = 0; i < count; i++)
		printf("%" PRIx64 " %u %u %d %d %x %x %" PRIx64 "\n", addr, 2 * names[i].first, 2 * names[i].last, names[i].kind, names[i].single,
		       names[i].name, names[i].argument, names[i].made);
	free(names);
	free(bytes);
	return count < 0 ? count : err;
}

int main(int argc, char **argv)
{
	struct fault fault = {0};
	struct symtab *symbols = NULL;
	struct codes *codes = NULL;
	struct remote remote;
	struct pyproc proc;
	raddr_t addr;
	int err = argc == 2 ? discover_open(&remote, atoi(argv[1]), &fault) : -EINVAL;

	if (err)
		return -err;
	err = discover(&proc, &remote, &fault);
	if (!err)
		err = symtab_new(&symbols);
	if (!err)
		err = codes_new(&codes, &proc.abi, symbols);
	while (!err && scanf("%" SCNx64, &addr) == 1)
		err = show(&proc.abi, &remote, codes, addr);
	codes_free(codes);
	symtab_free(symbols);
	remote_release(&remote);
	return -err;
}
