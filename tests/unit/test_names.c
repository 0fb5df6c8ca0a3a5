/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/builder.h"
#include "base/clock.h"
#include "exporters/names_demangle.h"
#include "exporters/names_fold.h"
#include "exporters/names_state.h"
#include "exporters/names_symbols.h"
#include "exporters/names_wire.h"

/* --- what symbols are called --- */

static void expect_readable(const char *symbol, const char *readable)
{
	char to[512];

	name_readable(to, sizeof(to), symbol);
	cr_assert_str_eq(to, readable);
}

Test(names, symbols_are_made_readable)
{
	expect_readable("list_sort_impl.constprop.0.isra.0", "list_sort_impl");
	expect_readable("_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault");
	expect_readable("lock.llvm.1234567890", "lock");
	expect_readable("memcpy@@GLIBC_2.14", "memcpy");
	expect_readable("a.b", "a.b");
	expect_readable(".hidden", ".hidden");
	expect_readable("@odd", "@odd");
	expect_readable("", "");
	expect_readable("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back");
	expect_readable("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place");
	expect_readable("_RNvMNtCs1234_7mycrate3fooNtB2_3Bar3run", "<mycrate::foo::Bar>::run");
	expect_readable("_ZN3fooC2Ev.cold", "foo::foo");
	expect_readable("_Znonsense", "_Znonsense");
}

Test(names, long_names_are_cut)
{
	static char symbol[40000];
	char to[32];

	memset(symbol, 'x', sizeof(symbol) - 1);
	cr_assert_lt(name_readable(to, sizeof(to), symbol), sizeof(to));
	memcpy(symbol, "_Z", 2);
	cr_assert_lt(name_readable(to, sizeof(to), symbol), sizeof(to));
}

/* --- which one covers a place --- */

static const char *at(struct code_symbols *symbols, uint64_t address)
{
	const struct code_symbol *found = code_symbols_find(symbols, address);

	return found ? found->name : "";
}

Test(names, a_symbol_covers_its_size)
{
	struct code_symbols s = {0};

	code_symbols_append(&s, &(struct code_symbol){.start = 100, .end = 110, .name = "small", .sized = true});
	code_symbols_append(&s, &(struct code_symbol){.start = 200, .end = 1000, .name = "label"});
	code_symbols_append(&s,
	                    &(struct code_symbol){.start = 300, .end = 400, .name = "outer", .rank = 1, .sized = true});
	code_symbols_append(&s, &(struct code_symbol){.start = 320, .end = 330, .name = "inner", .sized = true});
	code_symbols_append(&s, &(struct code_symbol){.start = 300, .end = 400, .name = "alias", .sized = true});
	cr_assert_str_eq(at(&s, 99), "");
	cr_assert_str_eq(at(&s, 109), "small");
	cr_assert_str_eq(at(&s, 110), "", "what is behind it is not in it");
	cr_assert_str_eq(at(&s, 299), "label", "without a size up to the next");
	cr_assert_str_eq(at(&s, 300), "outer", "the higher rank");
	cr_assert_str_eq(at(&s, 325), "inner");
	cr_assert_str_eq(at(&s, 331), "outer");
	cr_assert_str_eq(at(&s, 400), "", "a label ends where another begins");
	code_symbols_release(&s);
}

/* --- what is folded away --- */

Test(names, machinery_is_of_the_interpreter)
{
	cr_assert(name_is_machinery("_PyEval_EvalFrameDefault", MAPPING_INTERPRETER, true));
	cr_assert(name_is_machinery("PyObject_Call", MAPPING_INTERPRETER, false));
	cr_assert(name_is_machinery("method_vectorcall_FASTCALL", MAPPING_INTERPRETER, false));
	cr_assert(name_is_machinery("slot_tp_call", MAPPING_INTERPRETER, false));
	cr_assert(name_is_machinery("pymain_run_python", MAPPING_INTERPRETER, false));
	cr_assert(name_is_machinery("thread_run", MAPPING_INTERPRETER, false));
	cr_assert_not(name_is_machinery("PyObject_Call", 0, false), "in an extension it is its own");
	cr_assert_not(name_is_machinery("main", 0, false));
	cr_assert(name_is_machinery("__libc_start_call_main", MAPPING_SYSTEM, false));
	cr_assert(name_is_machinery("clone3", MAPPING_SYSTEM, false));
	cr_assert_not(name_is_machinery("clone3", MAPPING_SYSTEM, true), "it is what runs");
	cr_assert_not(name_is_machinery("start", 0, false), "an extension's own function");
	cr_assert(name_is_machinery("_start", 0, false), "a program that has the interpreter in a library");
	cr_assert(name_is_machinery("wrap_call", MAPPING_INTERPRETER, false));
	cr_assert_not(name_is_machinery("wrap_strftime", MAPPING_INTERPRETER, false), "datetime's, which is built in");
	cr_assert(name_is_machinery("_Py_slot_tp_getattr_hook", MAPPING_INTERPRETER, false));
	cr_assert(name_is_machinery("_PyObject_Vectorcall", 0, false), "inlined into an extension from a header");
}

Test(names, what_works_for_the_user_stays)
{
	static const char *const work[] = {"list_sort_impl",  "py_encode_basestring_ascii",
	                                   "dict_update",     "unicode_join",
	                                   "deflate",         "_PyDict_SetItem_Take2",
	                                   "long_mul",        "scanner_call",
	                                   "gc_collect_main", "match_pattern"};

	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		cr_assert_not(name_is_machinery(work[i], MAPPING_INTERPRETER, false), "%s", work[i]);
	cr_assert(name_is_machinery("PyObject_GetAttr", MAPPING_INTERPRETER, false), "it leads to a property");
	cr_assert_not(name_is_machinery("PyObject_GetAttr", MAPPING_INTERPRETER, true), "it looks up itself");
	cr_assert(name_is_machinery("py::f:/x.py", MAPPING_MEMORY, false));
	cr_assert_not(name_is_machinery("jitted", MAPPING_MEMORY, false));
}

/* --- the wire --- */

struct answer {
	unsigned calls;
	char names[DEBUG_FRAMES_MAX][16];
	size_t longest;
};

static int take(void *context, uint32_t index, const struct code_frame *frames, size_t count)
{
	struct answer *answer = context;

	answer->calls++;
	for (size_t i = 0; i < count; i++)
		if (strlen(frames[i].name) > answer->longest)
			answer->longest = strlen(frames[i].name);
	return index == 77 ? -ECANCELED : 0;
}

static void make_frames(struct code_frame frames[DEBUG_FRAMES_MAX], const char *name)
{
	for (size_t i = 0; i < DEBUG_FRAMES_MAX; i++)
		frames[i] = (struct code_frame){.name = name, .file = "f.c", .line = 7};
}

Test(names, answers_go_through_whatever_their_size)
{
	static struct wire_answers out;
	static union wire_message in;
	static char name[REC_TEXT_MAX + 100];
	struct code_frame frames[DEBUG_FRAMES_MAX];
	struct answer answer = {0};
	int pair[2], fds[WIRE_FDS];
	long got;

	memset(name, 'n', sizeof(name) - 1);
	make_frames(frames, name);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (size_t count = 1; count <= DEBUG_FRAMES_MAX; count++) {
		wire_answers_begin(&out, pair[0], 3, 9);
		wire_answers_add(&out, 1, frames, count);
		wire_answers_add(&out, 2, frames, 0);
		cr_assert_eq(wire_answers_end(&out), 0);
		while ((got = wire_receive(pair[1], &in, fds, true)) > 0 && in.head.type != WIRE_DONE) {
			cr_assert(wire_is_sound(&in, (size_t)got));
			cr_assert_eq(wire_answers_each(&in, (size_t)got, 8, take, &answer), 0);
		}
		cr_assert_eq(answer.calls, count, "one answer each time; of nothing there is none");
	}
	cr_assert_eq(answer.longest, REC_TEXT_MAX);
	wire_answers_begin(&out, pair[0], 3, 9);
	wire_answers_add(&out, 8, frames, 1);
	cr_assert_eq(wire_answers_end(&out), 0);
	got = wire_receive(pair[1], &in, fds, true);
	cr_assert_eq(wire_answers_each(&in, (size_t)got, 8, take, &answer), -EPROTO, "so many were not asked for");
	for (size_t cut = sizeof(in.head); cut < (size_t)got; cut += 97)
		cr_assert_eq(wire_answers_each(&in, cut, 16, take, &answer), -EPROTO);
	close(pair[0]);
	close(pair[1]);
}

Test(names, messages_that_make_no_sense_are_refused)
{
	static union wire_message m;

	m.head = (struct wire_head){WIRE_ASK, 0, 1, 2};
	cr_assert(wire_is_sound(&m, WIRE_ASK_BYTES + 8));
	cr_assert_not(wire_is_sound(&m, WIRE_ASK_BYTES + 4));
	m.head.module = WIRE_MODULES_MAX;
	cr_assert_not(wire_is_sound(&m, WIRE_ASK_BYTES + 8));
	m.head = (struct wire_head){WIRE_ASK, 0, 1, WIRE_OFFSETS_MAX + 1};
	cr_assert_not(wire_is_sound(&m, WIRE_ASK_BYTES + 4 * (WIRE_OFFSETS_MAX + 1)));
	m.add = (struct wire_add){.head = {WIRE_ADD, 0, 0, 0}, .path_bytes = 4, .build_id_bytes = BUILD_ID_MAX + 1};
	cr_assert_not(wire_is_sound(&m, WIRE_ADD_BYTES + 4 + BUILD_ID_MAX + 1));
	m.add.build_id_bytes = 0;
	memcpy(m.add.text, "/a\0b", 4);
	cr_assert_not(wire_is_sound(&m, WIRE_ADD_BYTES + 4), "a NUL in a path");
	m.head.type = 99;
	cr_assert_not(wire_is_sound(&m, sizeof(m.head)));
	cr_assert_not(wire_is_sound(&m, 3));
}

/* --- a whole profile --- */

/* main → a place without a name → two places of this very program, one of them in a function that is folded or not. */
static struct profile *make_profile(const char *module, const char *build_id, uint32_t flags, uint32_t where)
{
	struct builder_options options = {0};
	struct symbol symbol = {.name = "m",
	                        .file = "",
	                        .module = module,
	                        .build_id = build_id,
	                        .mapped = true,
	                        .kind = FRAME_NATIVE,
	                        .flags = (uint8_t)flags};
	uint64_t values[VALUE_COUNT] = {5};
	struct builder *builder;
	struct profile *profile;
	uint32_t thread, node;

	cr_assert_eq(builder_new(&builder, &options), 0);
	builder_process(builder, &(struct process){.pid = 1});
	thread = builder_thread(builder, &(struct thread_tree){.tid = 1});
	node = builder_child(builder, thread, 0, builder_symbol(builder, "work", 4, "w.py", 4, 1, FRAME_PYTHON, 0), 3);
	node = builder_child(builder, thread, node, builder_symbol_like(builder, &symbol), where);
	builder_add(builder, thread, node, values);
	cr_assert_eq(builder_finish(builder, &profile), 0);
	builder_free(builder);
	return profile;
}

static struct names *start(enum native_frames show)
{
	struct names_options options = {.show = show, .timeout_ns = 20 * NS_PER_S};
	struct names *names;

	cr_assert_eq(names_new(&names, &options), 0);
	return names;
}

/* The innermost frame of the profile's only stack. */
static const struct symbol *leaf(const struct profile *p)
{
	const struct thread_tree *tree = &p->threads[0];

	for (uint32_t i = 1; i < tree->node_count; i++)
		if (tree->nodes[i].self[VALUE_SAMPLES])
			return &p->symbols[tree->nodes[i].symbol];
	return NULL;
}

static uint32_t place_in_vdso(void)
{
	return 0xa00; /* wherever: functions begin there on all that have one */
}

Test(names, a_profile_gets_names, .timeout = 60)
{
	struct names *names = start(NATIVE_ALL);
	struct profile *p = make_profile("[vdso]", "", MAPPING_SYSTEM, place_in_vdso());

	cr_assert_eq(names_apply(names, &p), 0);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 5, "nothing is lost");
	cr_assert_not(leaf(p)->mapped);
	cr_assert_str_eq(leaf(p)->module, "[vdso]");
	profile_free(p);
	names_free(names);
}

Test(names, what_is_not_known_stays_a_place, .timeout = 60)
{
	struct names *names = start(NATIVE_CALLS);
	struct profile *p = make_profile("/nonexistent/lib.so", "00112233", 0, 0x40);

	cr_assert_eq(names_apply(names, &p), 0);
	cr_assert(leaf(p)->mapped);
	profile_free(p);
	p = make_profile("/nonexistent/python3.11", "00112233", MAPPING_INTERPRETER, 0x40);
	cr_assert_eq(names_apply(names, &p), 0);
	cr_assert_str_eq(leaf(p)->name, "[python3.11]", "of a stripped interpreter it is known that it is that");
	profile_free(p);
	names_free(names);
}

Test(names, a_child_that_dies_holds_nobody_up, .timeout = 60)
{
	struct names *names = start(NATIVE_ALL);
	struct profile *p = make_profile("[vdso]", "", MAPPING_SYSTEM, place_in_vdso());

	kill(names->child, SIGKILL);
	cr_assert_lt(names_apply(names, &p), 0);
	cr_assert(leaf(p)->mapped, "it is as it was");
	cr_assert_lt(names_apply(names, &p), 0, "and so from then on");
	profile_free(p);
	names_free(names);
}

Test(names, a_child_that_sleeps_is_left, .timeout = 60)
{
	struct names_options options = {.show = NATIVE_ALL, .timeout_ns = 200 * NS_PER_MS};
	struct profile *p = make_profile("[vdso]", "", MAPPING_SYSTEM, place_in_vdso());
	uint64_t begin_ns = clock_now_ns();
	struct names *names;

	cr_assert_eq(names_new(&names, &options), 0);
	kill(names->child, SIGSTOP);
	cr_assert_eq(names_apply(names, &p), -ETIMEDOUT);
	cr_assert_lt(clock_now_ns() - begin_ns, 10 * NS_PER_S);
	profile_free(p);
	names_free(names);
}

Test(names, modules_are_sent_once, .timeout = 60)
{
	struct names *names = start(NATIVE_ALL);
	struct names_module module = {.path = "/proc/self/exe", .flags = 0, .fd = -1, .root_fd = -1, .perf_map_fd = -1};

	cr_assert_not(names_has(names, &module));
	names_add(names, &module);
	cr_assert(names_has(names, &module));
	module.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	names_add(names, &module);
	cr_assert_eq(fcntl(module.fd, F_GETFD), -1, "its descriptor is closed all the same");
	cr_assert_eq(names->module_count, 1);
	for (unsigned i = 0; i < WIRE_MODULES_MAX + 10; i++) {
		struct names_module more = module;

		more.fd = -1;
		more.key = i + 1;
		names_add(names, &more);
	}
	cr_assert_eq(names->module_count, WIRE_MODULES_MAX, "so many and no more");
	names_free(names);
}
