# SPDX-License-Identifier: Apache-2.0
# From the compiler's "#define SYS_read __NR_read" to the table that sampler/syscalls.c looks into.
BEGIN {
	print "#include <sys/syscall.h>\n#include \"sampler/syscalls.h\"\n\nconst char *const syscall_names[] = {"
}
$1 == "#define" && $2 ~ /^SYS_[a-z0-9_]+$/ && NF == 3 {
	print "\t[" $2 "] = \"" substr($2, 5) "\","
}
END {
	print "};\n\nconst unsigned syscall_name_count = sizeof(syscall_names) / sizeof(syscall_names[0]);"
}
