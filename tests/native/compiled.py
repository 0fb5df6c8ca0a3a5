# SPDX-License-Identifier: Apache-2.0
"""C++ with templates and exceptions, and what Cython would have made, in turn, for ever."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain_cxx  # noqa: E402
import chain_pyx  # noqa: E402

STACKS = {
    "": ["module"],
    "module": ("python", "<module>", {"loop": ["loop"]}),
    "loop": ("python", "loop", {"templates": ["templates"], "throws": ["throws"], "integrate": ["integrate"]}),
    "templates": ("python", "templates", {"c_templates": ["cxx_templates"]}),
    "cxx_templates": ("glue", "cxx_templates", ["run_double", "run_float"]),
    "run_double": ("native", r"(double )?work::run<double, 1000>(\(int\))?", ["reduce_double", "memory"]),
    "run_float": ("native", r"(float )?work::run<float, 1000>(\(int\))?", ["reduce_float", "memory"]),
    "reduce_double": ("native", r"work::Kernel<double>::reduce(\(int\))?", []),
    "reduce_float": ("native", r"work::Kernel<float>::reduce(\(int\))?", []),
    "memory": ("library", r"libstdc\+\+|libc[.-]", []),
    "throws": ("python", "throws", {"c_throws": ["cxx_throws"]}),
    "cxx_throws": ("glue", "cxx_throws", ["throw_outer"]),
    "throw_outer": ("native", r"work::throw_outer(\(int\))?", ["throw_middle", "caught"]),
    "throw_middle": ("native", r"work::throw_middle(\(int\))?", ["throw_inner"]),
    "throw_inner": ("native", r"work::throw_inner(\(int\))?", ["unwinder"]),
    "unwinder": ("library", r"libstdc\+\+|libgcc_s|libc[.-]|ld-|chain_cxx", []),
    "caught": ("library", r"libstdc\+\+|libgcc_s|libc[.-]", []),
    "integrate": ("python", "integrate", {"c_integrate": ["pw_integrate"]}),
    "pw_integrate": ("glue", r"__pyx_pw_7kernels_1integrate", ["rows"]),
    "rows": ("native", r"__pyx_f_7kernels_integrate_rows", ["integrand"]),
    "integrand": ("native", r"__pyx_f_7kernels_integrand", []),
}


def templates():
    return chain_cxx.templates(400)  #@ c_templates


def throws():
    return chain_cxx.throws(1500)  #@ c_throws


def integrate():
    return chain_pyx.integrate(5000)  #@ c_integrate


def loop():
    while True:
        templates()  #@ templates
        throws()  #@ throws
        integrate()  #@ integrate


if __name__ == "__main__":
    print("READY {}", flush=True)
    loop()  #@ loop
