/* SPDX-License-Identifier: Apache-2.0 */
/* The records that the sampler writes into the ring: the only channel from it to the aggregator.
 *
 * Every record begins with struct rec_head and is a multiple of 8 bytes long. Ids (symbols, threads, targets) are the
 * sampler's own 32-bit numbers, begin at 1, and are never used twice, so that reuse of a pid, tid or address cannot
 * alias. A record that names an id comes after the record that defines it. A saved stream of these bytes, from its
 * start on, is complete in itself: it is the test fixture of every layer above.
 *
 * Host byte order: the stream never leaves the machine that wrote it. */
#ifndef SAMPLED_SAMPLER_RECORD_H
#define SAMPLED_SAMPLER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum rec_type {
	REC_SYMBOL = 1, /* struct rec_symbol: a function, or a special frame */
	REC_FORGET,     /* struct rec_forget: a symbol that no later stack names */
	REC_MAPPING,    /* struct rec_mapping: a file, or a piece of memory, that native frames lie in */
	REC_THREAD,     /* struct rec_thread: a thread, its new name, or its end */
	REC_STACK,      /* struct rec_stack: a run of identical samples of one thread */
	REC_FACTS,      /* struct rec_facts: one target's sampling facts and losses so far */
	REC_TARGET,     /* struct rec_target: a target was attached, exec'd, or is gone */
	REC_MARK,       /* struct rec_mark: everything sampled before the mark was asked for is in the stream now */
	REC_TIME,       /* struct rec_time: CPU time that a thread has used, by the kernel's count */
};

struct rec_head {
	uint32_t bytes; /* of the whole record, this head included; a multiple of 8 */
	uint32_t type;  /* enum rec_type */
};

enum frame_kind {
	FRAME_PYTHON,  /* id: a symbol; where: line, 0 when unknown */
	FRAME_NATIVE,  /* id: a mapping; where: offset in it (struct rec_mapping) */
	FRAME_SPECIAL, /* id: a symbol whose name stands in <>, such as <GC>; where: 0 */
};

struct frame {
	uint32_t kind : 2; /* enum frame_kind */
	uint32_t id : 30;
	uint32_t where;
};

static inline struct frame frame_make(enum frame_kind kind, uint32_t id, uint32_t where)
{
	return (struct frame){.kind = (uint32_t)kind & 3u, .id = id & 0x3fffffffu, .where = where};
}

/* A symbol is known by content: name, file and first line together are one id. */
struct rec_symbol {
	struct rec_head head;
	uint32_t id;
	uint32_t kind; /* enum frame_kind */
	uint32_t first_line;
	uint32_t name_bytes; /* valid UTF-8, no NUL; qualified name where the interpreter knows it */
	uint32_t file_bytes; /* valid UTF-8, no NUL */
	uint32_t flags;      /* SYMBOL_* */
	char text[];         /* name, then file; not terminated */
};

enum {
	SYMBOL_CUT = 1,        /* name or file was longer than the bound and ends in an ellipsis */
	SYMBOL_UNREADABLE = 2, /* the name could not be read and is "<unreadable>" */
};

/* What native frames lie in; its id is one of the symbols' numbers, and goes by REC_FORGET as theirs do. `where` of a frame is the
 * offset in the file, or from the beginning of memory that has no file. It is that of the instruction, or, for a caller, of the last byte of
 * the call: one below the return address. Known by content: path, build id, device and inode; without a file by target and start. */
struct rec_mapping {
	struct rec_head head;
	uint32_t id;
	uint32_t target; /* in which it was met first */
	uint32_t flags;  /* MAPPING_* */
	uint32_t dev_major, dev_minor;
	uint32_t path_bytes;     /* as the target sees it; "[vdso]"; "" without a file */
	uint32_t build_id_bytes; /* of the ELF note; 0: it has none */
	uint32_t pad;
	uint64_t start, end, file_off; /* where it was mapped there */
	uint64_t inode;
	char text[]; /* path, then the build id's bytes */
};

enum {
	MAPPING_INTERPRETER = 1, /* the interpreter's code is in this file */
	MAPPING_SYSTEM = 2,      /* the C library, the dynamic linker, the vdso */
	MAPPING_MEMORY = 4,      /* no file: made while the program runs */
};

#define BUILD_ID_MAX 64

struct rec_forget {
	struct rec_head head;
	uint32_t id;
	uint32_t pad;
};

struct rec_thread {
	struct rec_head head;
	uint32_t id;
	uint32_t target;
	int64_t interpreter; /* the interpreter's own number; 0 is the main one */
	uint64_t tid;        /* in our pid namespace; 0 when unknown */
	uint64_t start_time; /* clock ticks since boot, field 22 of /proc/PID/task/TID/stat; 0 when unknown */
	uint32_t flags;      /* THREAD_* */
	uint32_t name_bytes; /* 0: no name known */
	char text[];
};

enum {
	THREAD_MAIN = 1,  /* tid equals the process' pid */
	THREAD_ENDED = 2, /* it is no more: no later stack names it */
};

/* What a thread was seen doing. wall is every sample; the rest are bits. */
enum thread_status {
	STATUS_RUNNABLE = 1,    /* runnable: running or waiting for a CPU */
	STATUS_GIL = 2,       /* holds the GIL */
	STATUS_GIL_WAIT = 4,  /* waits for the GIL */
	STATUS_IDLE = 8,      /* not runnable, neither holding nor waiting for the GIL */
	STATUS_UNKNOWN = 16,  /* whether it is runnable could not be found out */
	STATUS_GC = 32,       /* holds the GIL while its interpreter collects garbage */
	STATUS_EXCEPTION = 64 /* is handling an exception */
};

/* A run: `count` consecutive samples of one thread, alike in stack and status. The stack is root first. Its first
 * `shared` frames are those of the thread's previous REC_STACK in this stream; only the rest are in frames[]. */
struct rec_stack {
	struct rec_head head;
	uint32_t thread;
	uint32_t count;
	uint64_t t_first_ns; /* CLOCK_MONOTONIC of the first and the last sample */
	uint64_t t_last_ns;
	uint64_t weight_ns; /* the time these samples stand for */
	uint16_t status;    /* enum thread_status bits */
	uint16_t flags;     /* STACK_* */
	uint32_t depth;     /* frames of the whole stack */
	uint32_t shared;
	uint32_t pad;
	struct frame frames[]; /* depth - shared */
};

enum {
	STACK_TRUNCATED =
		1, /* deeper than the bound: root-side frames are missing, a special frame <truncated> stands for them */
	STACK_NATIVE_CUT = 2, /* the native frames are the innermost ones only: further out there was no way to tell */
};

/* Why a sample was not had. */
enum loss_cause {
	LOSS_TORN,       /* never whole, after all retries */
	LOSS_UNREADABLE, /* memory of the target could not be read */
	LOSS_INVALID,    /* the target's data failed validation (a loop, a wild pointer) */
	LOSS_GONE,       /* the thread or the process ended while it was read */
	LOSS_DROPPED,    /* the ring was full */
	LOSS_CAUSES
};

/* Why a thread was read again. */
enum retry_cause {
	RETRY_MOVED, /* the copy is of more than one moment */
	RETRY_GUESS, /* it lacked something, which the next one has */
	RETRY_LINK,  /* the thread state named a frame, behind a generator or C, that the copy does not lead to */
	RETRY_CODE,  /* a code object proved to be another one */
	RETRY_CALL,  /* a call that cannot be */
	RETRY_CAUSES
};

/* Stops are counted by how long they were: 4 bins for each doubling, the first from 1 µs; the last has all that were longer. */
enum { STOP_BINS = 56 };

/* Cumulative since the target was attached, so that a lost record of this type loses nothing.
 * attempts = samples + the sum of lost[]: what is not decided yet is in neither. Of samples, those of the stacks in the stream up to here. */
struct rec_facts {
	struct rec_head head;
	uint32_t target;
	uint32_t pad;
	uint64_t interval_ns;           /* asked; 0: unthrottled */
	uint64_t t_start_ns;            /* of the first tick */
	uint64_t t_last_ns;             /* of the last tick */
	uint64_t ticks;                 /* reads of the whole target */
	uint64_t ticks_late;            /* came more than half an interval late */
	uint64_t ticks_missed;          /* deadlines that passed without a tick */
	uint64_t attempts;              /* one thread at one tick */
	uint64_t samples;               /* that are in the stream */
	uint64_t runs;                  /* stack records they are in */
	uint64_t retries[RETRY_CAUSES]; /* extra reads of a thread, by enum retry_cause */
	uint64_t confirms;              /* extra reads because an edge was new */
	uint64_t deferred; /* samples taken later, of threads that could not be stopped at once */
	uint64_t truncated; /* samples whose stack was cut */
	uint64_t unsampled_ns;  /* thread time that no sample stands for */
	uint64_t reads;         /* system calls that read the target */
	uint64_t read_segments; /* pieces of memory in them */
	uint64_t read_bytes;
	uint64_t read_ns;           /* time in them */
	uint64_t symbols;           /* defined so far */
	uint64_t lost[LOSS_CAUSES]; /* samples, by enum loss_cause */
	uint64_t ticks_credited; /* of ticks: the process had not run since it was read last, and was not read again */
	uint64_t ticks_saved;    /* deadlines left out to keep to the CPU budget (sampler_slow_down()) */
	/* Of native and blocking sampling. */
	uint64_t native;     /* of samples: with their native frames, all of them */
	uint64_t native_cut; /* of samples: with the innermost native frames only */
	uint64_t
		native_mismatched; /* of samples: the native stack ran the interpreter more or less often than Python's frames say; left out */
	uint64_t native_failed;  /* of samples: without native frames, for another reason */
	uint64_t stops;          /* threads stopped for a sample */
	uint64_t stops_given_up; /* not reached in time: the sample was taken without */
	uint64_t eintr_risk;     /* stops that found a thread in a system call: it may have ended with EINTR */
	uint64_t stop_ns;        /* time stopped, of all stops */
	uint64_t stop_max_ns;
	uint64_t stop_bins[STOP_BINS]; /* stops by length */
	uint64_t near; /* of samples: of threads that stood without being stopped (near.h) */
};

enum target_event { TARGET_ATTACHED = 1, TARGET_EXECED, TARGET_EXITED, TARGET_DETACHED };

struct rec_target {
	struct rec_head head;
	uint32_t id;
	uint32_t event; /* enum target_event */
	uint64_t t_ns;
	int32_t pid; /* in our pid namespace */
	int32_t parent_pid;
	uint64_t start_time; /* clock ticks since boot */
	uint32_t version;    /* hexadecimal as sys.hexversion >> 8: 0x030b02 is 3.11.2 */
	uint32_t group;      /* as given to target_configure(): what it means is the consumer's */
	uint32_t name_bytes; /* the command line, arguments joined by a blank */
	uint32_t pad;
	char text[];
};

/* What the kernel counted since the thread's record before: it counts when a thread is switched out and at scheduler ticks, so the interval is 20 ms
 * and more. The consumer gives it to the stacks in between (records of the thread since its REC_TIME before), by their time on a CPU. */
struct rec_time {
	struct rec_head head;
	uint32_t thread;
	uint32_t pad;
	uint64_t t_from_ns, t_to_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;             /* on a CPU */
	uint64_t wait_ns;            /* runnable, and waiting for a CPU */
};

struct rec_mark {
	struct rec_head head;
	uint64_t sequence; /* as passed to sampler_ask_mark() */
	uint64_t t_ns;
};

static inline uint32_t rec_round(uint64_t bytes)
{
	return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}

/* Longest text of a symbol's name or file, in bytes; longer is cut at a character and marked. */
#define REC_TEXT_MAX 4096
/* Deepest stack kept whole, in frames. */
#define REC_DEPTH_MAX 16384
/* Longest record: a stack of REC_DEPTH_MAX frames of 8 bytes, with room to spare. The ring must be several times larger. */
#define REC_BYTES_MAX (REC_DEPTH_MAX * 8 + 4096)

#endif
