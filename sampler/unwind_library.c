/* SPDX-License-Identifier: Apache-2.0 */
/* What libunwind guesses where it finds no rules is never asked for: each step is of a function whose entry was found, and checked, before. */
#include "sampler/unwind_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && __has_include(<libunwind-x86_64.h>)

#include <dlfcn.h>
#include <libunwind-x86_64.h>
#include <stddef.h>

static const char file[] = "libunwind-x86_64.so.8";

enum { CACHE_STATES = 1024 };

extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int,
                                              void *);

/* The functions that we use, as libunwind's own header renames them. */
#define UNWIND_FUNCTIONS(X)                                                                                            \
	X(create_addr_space, UNW_OBJ(create_addr_space))                                                               \
	X(destroy_addr_space, UNW_OBJ(destroy_addr_space))                                                             \
	X(set_caching_policy, UNW_OBJ(set_caching_policy))                                                             \
	X(set_cache_size, UNW_OBJ(set_cache_size))                                                                     \
	X(flush_cache, UNW_ARCH_OBJ(flush_cache))                                                                      \
	X(init_remote, UNW_OBJ(init_remote))                                                                           \
	X(step, UNW_OBJ(step))                                                                                         \
	X(get_reg, UNW_OBJ(get_reg))                                                                                   \
	X(search, UNW_OBJ(dwarf_search_unwind_table))

struct functions {
#define UNWIND_MEMBER(name, symbol) __typeof__ (&(symbol))(name);
	UNWIND_FUNCTIONS(UNWIND_MEMBER)
#undef UNWIND_MEMBER
};

#define UNWIND_TEXT_OF(text) #text
#define UNWIND_TEXT(symbol)  UNWIND_TEXT_OF(symbol)

static const struct {
	const char *name;
	size_t offset;
} rows[] = {
#define UNWIND_ROW(name, symbol) {UNWIND_TEXT(symbol), offsetof(struct functions, name)},
	UNWIND_FUNCTIONS(UNWIND_ROW)
#undef UNWIND_ROW
};

struct unwind_library {
	struct functions call;
	unw_addr_space_t space;
};

/* libunwind looks a function up in a sorted table of the target. There is one for each step, of one entry, at an address of the kernel's. */
#define TABLE_ADDR UINT64_C(0xffffffffffff0000)

struct step { /* what the callbacks work on */
	const struct unwind_library *library;
	const struct unwind_place *place;
	const struct unwind_copy *copy;
	const struct unwind_regs *regs;
	int32_t entry[2];
	uint32_t *accesses;
	bool lacks, over;
};

static int load(struct functions *ret_functions)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	struct functions functions;

	if (!handle)
		return -ENOSYS;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *function = dlsym(handle, rows[i].name);

		if (!function) {
			dlclose(handle);
			return -ENOSYS;
		}
		memcpy((char *)&functions + rows[i].offset, &function, sizeof(function));
	}
	*ret_functions = functions;
	return 0;
}

/* One byte of the tables, or 0 behind their end: libunwind reads words that are aligned, of which it needs a part. */
static uint8_t table_byte(const struct unwind_place *place, uint64_t addr)
{
	const uint8_t *byte = unwind_tables_at(place->tables, addr, 1);

	return byte ? *byte : 0;
}

static bool read_tables(const struct unwind_place *place, raddr_t addr, unw_word_t *to)
{
	uint64_t at = addr - place->bias;
	const uint8_t *whole = unwind_tables_at(place->tables, at, sizeof(*to));
	unw_word_t word = 0;

	if (whole) {
		memcpy(to, whole, sizeof(*to));
		return true;
	}
	if (!unwind_tables_at(place->tables, at, 1) && !unwind_tables_at(place->tables, at + 7, 1))
		return false;
	for (unsigned i = 0; i < sizeof(word); i++)
		word |= (unw_word_t)table_byte(place, at + i) << 8 * i;
	*to = word;
	return true;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *context)
{
	struct step *step = context;
	const struct unwind_copy *copy = step->copy;

	(void)space;
	if (*step->accesses == 0) {
		step->over = true;
		return -UNW_EUNSPEC;
	}
	--*step->accesses;
	if (write)
		return -UNW_EREADONLYREG;
	if (addr >= copy->from && addr - copy->from <= copy->count &&
	    copy->count - (addr - copy->from) >= sizeof(*value)) {
		memcpy(value, copy->bytes + (addr - copy->from), sizeof(*value));
		return 0;
	}
	if (addr == TABLE_ADDR) {
		memcpy(value, step->entry, sizeof(*value));
		return 0;
	}
	if (read_tables(step->place, addr, value))
		return 0;
	step->lacks = true;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *context)
{
	struct step *step = context;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	if (number == UNW_X86_64_RIP) {
		*value = step->place->addr;
		return 0;
	}
	if (number < 0 || !unwind_knows(step->regs, (unsigned)number)) {
		step->lacks = true;
		return -UNW_EBADREG;
	}
	*value = step->regs->values[number];
	return 0;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
                          void *context)
{
	struct step *step = context;
	const struct unwind_place *place = step->place;
	raddr_t start = place->fde.start + place->bias;
	unw_dyn_info_t table = {
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.start_ip = start,
		.end_ip = place->fde.end + place->bias,
		.u.rti = {.segbase = start, .table_len = 1, .table_data = TABLE_ADDR},
	};

	if (ip != place->addr)
		return -UNW_EINVAL; /* not -UNW_ENOINFO: then it would guess */
	return step->library->call.search(space, ip, &table, info, need_unwind_info, context) == 0 ? 0 : -UNW_EINVAL;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int no_dyn_info(unw_addr_space_t space, unw_word_t *addr, void *context)
{
	(void)space;
	(void)addr;
	(void)context;
	return -UNW_ENOINFO;
}

static int no_fpreg(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write, void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t addr, char *name, size_t room, unw_word_t *off, void *context)
{
	(void)space;
	(void)addr;
	(void)name;
	(void)room;
	(void)off;
	(void)context;
	return -UNW_ENOINFO;
}

int unwind_library_new(struct unwind_library **ret_library)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dyn_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = no_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};
	struct unwind_library *library = calloc(1, sizeof(*library));
	int err;

	if (!library)
		return -ENOMEM;
	err = load(&library->call);
	if (err) {
		free(library);
		return err;
	}
	library->space = library->call.create_addr_space(&accessors, 0);
	if (!library->space) {
		free(library);
		return -ENOMEM;
	}
	library->call.set_caching_policy(library->space, UNW_CACHE_GLOBAL);
	library->call.set_cache_size(library->space, CACHE_STATES, 0);
	*ret_library = library;
	return 0;
}

void unwind_library_free(struct unwind_library *library)
{
	if (!library)
		return;
	library->call.destroy_addr_space(library->space);
	free(library);
}

void unwind_library_flush(struct unwind_library *library)
{
	if (library)
		library->call.flush_cache(library->space, 0, 0);
}

int unwind_library_step(struct unwind_library *library, const struct unwind_place *place,
                        const struct unwind_copy *copy, struct unwind_regs *regs, uint32_t *accesses)
{
	struct step step = {.library = library, .place = place, .copy = copy, .regs = regs, .accesses = accesses};
	int64_t distance = (int64_t)(place->fde.addr - place->fde.start);
	struct unwind_regs caller = {0};
	unw_cursor_t cursor;

	if (distance < INT32_MIN || distance > INT32_MAX)
		return -EPROTO;
	step.entry[1] = (int32_t)distance;
	if (library->call.init_remote(&cursor, library->space, &step) < 0 || library->call.step(&cursor) <= 0)
		return step.over ? -E2BIG : step.lacks ? -ENODATA : -EPROTO;
	for (unsigned i = 0; i < UNWIND_REGS; i++) {
		unw_word_t value;

		if (library->call.get_reg(&cursor, (unw_regnum_t)i, &value) == 0)
			unwind_set(&caller, i, value);
	}
	if (!unwind_knows(&caller, UNWIND_IP) || !unwind_knows(&caller, UNWIND_SP))
		return step.over ? -E2BIG : -ENODATA;
	*regs = caller;
	return 0;
}

#else /* no libunwind for this machine: such frames end the native part of a stack */

int unwind_library_new(struct unwind_library **ret_library)
{
	(void)ret_library;
	return -ENOSYS;
}

void unwind_library_free(struct unwind_library *library)
{
	(void)library;
}

void unwind_library_flush(struct unwind_library *library)
{
	(void)library;
}

int unwind_library_step(struct unwind_library *library, const struct unwind_place *place,
                        const struct unwind_copy *copy, struct unwind_regs *regs, uint32_t *accesses)
{
	(void)library;
	(void)place;
	(void)copy;
	(void)regs;
	(void)accesses;
	return -ENOSYS;
}

#endif
