/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --help. docs/sampled.1 says the same at length; a test compares the two. */
#include "daemon/help.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/error.h"
#include "daemon/terminal.h"
#include "exporters/format.h"
#include "sampler/pyabi/pyabi.h"

static const char overview[] =
	"sampled profiles running Python programs from outside: no restart, no code change, no stop.\n"
	"\n"
	"  sampled attach PID... [options]          profile until Ctrl-C, -d, or the last process' exit\n"
	"  sampled run [options] -- COMMAND...      start a program and profile it from its start on\n"
	"  sampled dump PID... [options]            one stack of every thread, now\n"
	"  sampled dump --core FILE                 the same of a process that died and left a core\n"
	"  sampled ctl COMMAND                      talk to the service: status list attach detach dump reload\n"
	"  sampled convert IN... -o OUT             any readable format to any writable one; several are merged\n"
	"  sampled report FILE... [options]         tables of any readable profile, as Python's pstats prints them\n"
	"  sampled diff BEFORE AFTER [-o OUT]       what grew and shrank: a table, a differential flame graph\n"
	"  sampled daemon [--check]                 the service: all Python processes of the host, always\n"
	"  sampled push [options]                   send what the service has spooled to profile stores\n"
	"  sampled doctor [PID]                     what works here or for a process, and how to fix what does not\n"
	"\n"
	"  sampled attach 4711 -d 10 -o profile.html     ten seconds of process 4711, for a browser\n"
	"  sampled run -- python3 app.py                 a program from its first moment on\n"
	"  sudo sampled dump 4711                        what a process of another user is doing right now\n"
	"\n"
	"`sampled help COMMAND` lists the options of a command; sampled --version prints the version.\n";

static const char attach_usage[] = "sampled attach PID... [options]\n"
				   "\n"
				   "Profiles running Python processes until Ctrl-C, -d, or the last process' exit.\n";

static const char run_usage[] =
	"sampled run [options] -- COMMAND [ARGUMENT...]\n"
	"\n"
	"Starts a program and profiles it from the interpreter's start on. Exits as the program did:\n"
	"its status, 128+N when signal N ended it; 125 when sampled failed before the program began.\n";

static const char profile_options[] =
	"\n"
	"How to sample:\n"
	"  -r, --rate RATE         ticks a second: 1000, 1khz, 2.5khz, 10k; max: unthrottled; default 250\n"
	"  -d, --duration TIME     stop after: 2.5, 500ms, 10s, 5m, 1h, 1d; counted from the first tick\n"
	"      --mode MODE         which samples count: wall (all, default), cpu (runnable), gil (holding the GIL),\n"
	"                          exception (handling one)\n"
	"  -t, --thread NAME|TID   only this thread; may be given several times\n"
	"      --idle, --no-idle   include idle threads in wall mode (default), or leave them out\n"
	"      --gc, --no-gc       show garbage collection as a frame (default: shown)\n"
	"      --native[=WHICH]    C frames between and above the Python ones, without the interpreter's machinery;\n"
	"                          all: with it; leaf: only those that the innermost Python frame called;\n"
	"                          extensions: without the interpreter, the C library and the dynamic linker;\n"
	"                          marks: a frame <native> wherever C called Python; nothing is stopped\n"
	"      --debuginfod        with --native: fetch missing debug data from the servers in DEBUGINFOD_URLS\n"
	"      --blocking          exact stacks: a thread that runs is stopped while it is read, for microseconds\n"
	"      --opcodes           the innermost frame's current instruction as a frame of its own\n"
	"      --jitter, --no-jitter\n"
	"                          take each sample at a random point of its interval (default)\n"
	"      --visit-budget SHARE\n"
	"                          most of each CPU's time that visits to running threads may take: 0% to 50%;\n"
	"                          a thread that is visited stands still and its stack is exact (default 2%)\n"
	"      --subprocesses      profile child processes too, present and future, and their children\n"
	"      --omit RE           drop samples with a frame whose file matches (extended regular expression)\n"
	"      --stop RE           cut the frames outside the outermost one whose file or name matches\n"
	"      --realtime          sample with real-time priority, where permitted\n"
	"\n"
	"What to write:\n"
	"  -f, --format FORMAT     default: by the suffix of -o, else flamegraph; may be given several times\n"
	"  -o, --output FILE       default: sampled-PID-TIME.SUFFIX here; -: standard output;\n"
	"                          one -o for each -f, or one -o as the base name of all\n"
	"      --record FILE       write every sample, in the order of time, for sampled convert (.sampled);\n"
	"                          without -f and -o nothing else is written\n"
	"      --push URL          send the profile to a profile store;\n"
	"                          without -f and -o nothing else is written\n"
	"      --push-type TYPE    pyroscope (default), pyroscope-push, parca or otlp\n"
	"      --svg               with -f pstats: the call graph beside it, drawn by Graphviz\n"
	"      --collapsed-style STYLE\n"
	"                          sampled (default) or tachyon\n"
	"      --stats             all figures, and what reading the processes cost\n"
	"  -q, --quiet             no progress and no closing summary\n"
	"  -v, --verbose           say what is found and passed over; all figures at the end\n"
	"      --version           print the version\n"
	"  -h, --help              this text\n"
	"\n"
	"SIGUSR1 writes a snapshot, STEM.NNNN.SUFFIX, and goes on. SIGINT, SIGTERM and SIGHUP stop and\n"
	"write; a second SIGINT gives up.\n";

static const char dump_usage[] =
	"sampled dump PID... [options]\n"
	"sampled dump --core FILE [--exe FILE] [--json] [--native] [--locals]\n"
	"\n"
	"Prints the stack of every Python thread of processes, innermost frame first, without stopping them;\n"
	"or of one that died, from its core file.\n"
	"\n"
	"      --core FILE         read this core file (unpacked)\n"
	"      --exe FILE          path of the program or libpython, if it has moved since the core was written;\n"
	"                          may be given again\n"
	"      --subprocesses      print child processes too, and their children\n"
	"      --json              as JSON; of several processes, or with --subprocesses, an array\n"
	"      --native[=WHICH]    C frames too, as for attach: all, leaf, extensions or marks\n"
	"      --blocking          a thread that runs is stopped while it is read\n"
	"      --locals            names and values of each frame's variables; given twice, more of each value and the\n"
	"                          attributes of instances. Values of names like password, token or key are <hidden>\n"
	"      --locals-all        hide none\n"
	"      --version           print the version\n"
	"  -h, --help              this text\n";

static const char ctl_usage[] =
	"sampled ctl [--socket PATH] COMMAND\n"
	"\n"
	"Talks to the service. Root may do all; others see and steer their own processes.\n"
	"\n"
	"  status [--json]         what the service does: processes, rates, losses, budgets, memory\n"
	"  list [--json]           the processes, one a line\n"
	"  attach PID              start to profile PID, overriding the rules\n"
	"  detach PID              stop to profile PID, overriding the rules\n"
	"  dump [PID]              write a profile of the history, of one process or of all\n"
	"      --rule NAME         of the processes that a rule selects\n"
	"      --all               of all, as without a PID\n"
	"      --merge             all processes as one\n"
	"      --last TIME         of the last 90s, 5m, 1h\n"
	"      --from WHEN, --to WHEN\n"
	"                          of this window: \"2026-11-22 05:20\", 05:20:30, -5m, 2026-11-22T05:20Z, now\n"
	"  -f, --format FORMAT     default: by the suffix of -o, else flamegraph\n"
	"  -o, --output FILE       default: sampled-PID-TIME.SUFFIX here; -: standard output\n"
	"  reload                  read the configuration again\n"
	"\n"
	"      --socket PATH       the service's socket; default /run/sampled/control.sock\n"
	"  -h, --help              this text\n";

static const char doctor_usage[] =
	"sampled doctor [PID]\n"
	"\n"
	"Checks what works on this host or for one process, and how to fix what does not. With a PID the\n"
	"exit status is the one that attach would have.\n"
	"\n"
	"  -h, --help              this text\n";

static const char push_usage[] =
	"sampled push [options]\n"
	"\n"
	"Sends what the service has spooled to profile stores: Pyroscope, Parca, OpenTelemetry Collectors.\n"
	"\n"
	"      --config FILE       default: /etc/sampled/push.conf; with --url none\n"
	"      --check             say whether the configuration is right, and do nothing\n"
	"      --once              send what there is and leave: status 1 when something could not be sent\n"
	"      --spool DIR         where profiles come from; default: /var/spool/sampled\n"
	"      --url URL           one more destination, http://HOST:PORT or https://HOST\n"
	"      --type TYPE         … of --url: pyroscope (default), pyroscope-push, parca or otlp\n"
	"      --listen ADDRESS:PORT\n"
	"                          metrics at /metrics there, for Prometheus\n"
	"      --version           print the version\n"
	"  -h, --help              this text\n";

static const char convert_usage[] =
	"sampled convert IN... -o OUT [options]\n"
	"\n"
	"Reads profiles of any readable format, told by content, merges them, and writes any writable one.\n"
	"- stands for standard input, and output.\n"
	"\n"
	"  -f, --format FORMAT     default: by the suffix of OUT\n"
	"  -o, --output OUT        the file to write\n"
	"      --svg               with -f pstats: the call graph beside it, drawn by Graphviz\n"
	"      --collapsed-style STYLE\n"
	"                          sampled (default) or tachyon\n"
	"      --history TIME      with -f dask: a list of trees, one for each such interval\n";

static const char report_usage[] =
	"sampled report FILE... [options]\n"
	"\n"
	"Prints what Python's pstats prints, of profiles of any readable format; several are added up.\n"
	"- stands for standard input.\n"
	"\n"
	"      --sort KEY[,KEY...] calls (ncalls), pcalls, cumulative (cumtime), time (tottime), file (filename,\n"
	"                          module), line, name, nfl (name, file, line), stdname, unique abbreviations of these,\n"
	"                          -1 (stdname), 0 (calls), 1 (time), 2 (cumulative); on_cpu, gil: own CPU time,\n"
	"                          and holding the GIL, which profiles of stacks hold that sampled took;\n"
	"                          default: on_cpu,time, or time where there is no CPU time\n"
	"      --reverse           the other way round\n"
	"      --limit RESTRICTION only so many functions, such a fraction of them (0.0 to 1.0), or those whose\n"
	"                          file:line(function) a regular expression finds; several are applied in turn\n"
	"      --callers           who called each function\n"
	"      --callees           whom each function called\n"
	"      --json, --csv       for programs, with all digits\n"
	"      --interactive       the statistics browser of python -m pstats\n";

static const char diff_usage[] =
	"sampled diff BEFORE AFTER [-o OUT] [options]\n"
	"\n"
	"What grew and what shrank from one profile to the other, by function, in shares of each one's CPU\n"
	"time, where both hold it; waiting stands apart. --value wall: shares of all time. Without -o a\n"
	"table; with -o a differential flame graph. Changes within the noise of sampling are marked.\n"
	"\n"
	"  -f, --format FORMAT     of OUT: flamegraph or svg; default: by its suffix\n"
	"  -o, --output OUT        write a differential flame graph\n"
	"      --json              all functions, as JSON\n"
	"      --sort KEY          by the change of self (default) or total, or by name\n"
	"      --limit N           functions in each part of the table; default 20; 0: all\n"
	"      --fail-above P      exit 6 when a function's share grew by more than P points, beyond the noise:\n"
	"                          of self time; with --sort total of total time\n";

static const char daemon_usage[] =
	"sampled daemon [--config FILE] [--check] [--socket PATH] [-v]\n"
	"\n"
	"The service: profiles the processes that its configuration names, sampled.conf(5), for as long as it\n"
	"runs.\n"
	"\n"
	"      --config FILE       default: /etc/sampled/sampled.conf, and conf.d/*.conf beside it\n"
	"      --check             say what is wrong with the configuration, and do nothing else; exit 2 if\n"
	"                          anything is\n"
	"      --socket PATH       where sampled ctl finds it; default /run/sampled/control.sock\n"
	"  -v, --verbose           say what is found and passed over\n"
	"      --version           print the version\n"
	"  -h, --help              this text\n"
	"\n"
	"SIGUSR1 dumps, SIGHUP reads the configuration again, SIGTERM ends.\n";

static const char filter_options[] =
	"\n"
	"Which part, and how it is folded:\n"
	"      --thread NAME|TID   only this thread; may be given several times\n"
	"      --from TIME, --to TIME\n"
	"                          only this window, from the profile's start: 2.5, 500ms, 10s, 5m\n"
	"      --mode MODE         wall (default), cpu, gil or exception: which samples count, by their state; of recordings\n"
	"      --no-idle           no samples of idle threads\n"
	"      --focus RE          only samples with a frame whose file or name matches (extended regular expression)\n"
	"      --ignore RE         no samples with such a frame\n"
	"      --omit RE           no samples with a frame whose file matches\n"
	"      --stop RE           cut the frames outside the outermost one whose file or name matches\n"
	"      --function-level    join the lines of a function; --line-level: keep them apart (default)\n"
	"      --strip-dirs        show files without their folders\n"
	"      --value NAME        the value to use, and to take shares of: samples, wall, cpu, alloc_space, Ir, ...\n"
	"      --min-percent P     join functions with less than P % into (other)\n";

/* Prints and releases. */
static int print(struct buf *text)
{
	int err = text->err ? text->err : terminal_print(buf_text(text));

	buf_release(text);
	if (err)
		error_note("cannot write to standard output: %s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

int help_print(const char *command)
{
	bool profiles = command && (strcmp(command, "attach") == 0 || strcmp(command, "run") == 0);
	struct buf text = {0};

	if (!command)
		buf_puts(&text, overview);
	else if (profiles)
		buf_printf(&text, "usage: %s%s", strcmp(command, "run") == 0 ? run_usage : attach_usage,
		           profile_options);
	else if (strcmp(command, "convert") == 0)
		buf_printf(&text, "usage: %s%s\nReadable: %s. Writable: %s.\n", convert_usage, filter_options,
		           format_read_names(), format_names());
	else if (strcmp(command, "report") == 0)
		buf_printf(&text, "usage: %s%s\nReadable: %s.\n", report_usage, filter_options, format_read_names());
	else if (strcmp(command, "diff") == 0)
		buf_printf(&text, "usage: %s%s\nReadable: %s.\n", diff_usage, filter_options, format_read_names());
	else if (strcmp(command, "daemon") == 0)
		buf_printf(&text, "usage: %s", daemon_usage);
	else if (strcmp(command, "push") == 0)
		buf_printf(&text, "usage: %s", push_usage);
	else
		buf_printf(&text, "usage: %s",
		           strcmp(command, "dump") == 0  ? dump_usage
		           : strcmp(command, "ctl") == 0 ? ctl_usage
		                                         : doctor_usage);
	if (!command || profiles)
		buf_printf(&text, "Formats: %s. Python %s.\n", format_names(), pyabi_supported());
	return print(&text);
}

int help_print_version(void)
{
	struct buf text = {0};

	buf_puts(&text, "sampled " SAMPLED_VERSION "\n");
	return print(&text);
}
