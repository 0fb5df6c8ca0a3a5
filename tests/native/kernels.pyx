# SPDX-License-Identifier: Apache-2.0
# What chain_pyx.c was "compiled" from. Never read by a compiler: its lines stand in that file's #line directives.
cdef double integrand(double x):
    return x * x / (x + 1)

cdef double integrate_rows(int rows):
    cdef double total = 0
    for row in range(rows):
        total += integrand(row)
    return total

def integrate(int rows):
    return integrate_rows(rows)
