/* SPDX-License-Identifier: Apache-2.0 */
/* The heat map's page as bundle.sh joined it, inside the program. The assembler finds it in the build directory (-Wa,-I). */
	.section .rodata
	.global heatmap_page, heatmap_page_bytes
heatmap_page:
	.incbin "heatmap.page"
heatmap_end:
	.balign 4
heatmap_page_bytes:
	.long heatmap_end - heatmap_page
	.section .note.GNU-stack, "", %progbits
