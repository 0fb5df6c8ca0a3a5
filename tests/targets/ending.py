# SPDX-License-Identifier: Apache-2.0
"""Ends at once, and takes a while for it: what its module holds, in cycles, is collected when it has no frame any more. Runs on 3.6 to 3.15."""
import gc

gc.disable()
cycles = []
for _ in range(600000):
    cycle = []
    cycle.append(cycle)
    cycles.append(cycle)
del cycles, cycle
