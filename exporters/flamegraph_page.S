/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's page as bundle.sh joined it, inside the program. The assembler finds it in the build directory (-Wa,-I). */
	.section .rodata
	.global flamegraph_page, flamegraph_page_bytes
flamegraph_page:
	.incbin "flamegraph.page"
page_end:
	.balign 4
flamegraph_page_bytes:
	.long page_end - flamegraph_page
	.section .note.GNU-stack, "", %progbits
