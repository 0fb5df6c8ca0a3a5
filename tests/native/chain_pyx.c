/* SPDX-License-Identifier: Apache-2.0 */
/* The module chain_pyx, as Cython would write it for kernels.pyx: mangled names, and lines that are those of the .pyx file. */
#define Py_LIMITED_API 0x03060000
#include <Python.h>

#define APART __attribute__((noinline))

#line 3 "kernels.pyx"
static APART double __pyx_f_7kernels_integrand(double x) { double sum = 0;
#line 4 "kernels.pyx"
	for (int i = 0; i < 200; i++) sum += (x + i) * x / (x + 1); return sum; }

#line 6 "kernels.pyx"
static APART double __pyx_f_7kernels_integrate_rows(int rows) {
#line 7 "kernels.pyx"
	double total = 0;
#line 8 "kernels.pyx"
	for (int row = 0; row < rows; row++)
#line 9 "kernels.pyx"
		total += __pyx_f_7kernels_integrand(row);
#line 10 "kernels.pyx"
	return total; }

#line 12 "kernels.pyx"
static PyObject *__pyx_pw_7kernels_1integrate(PyObject *self, PyObject *args) { int rows; (void)self; if (!PyArg_ParseTuple(args, "i", &rows)) return NULL;
#line 13 "kernels.pyx"
	return PyFloat_FromDouble(__pyx_f_7kernels_integrate_rows(rows) + 1); }

#line 30 "chain_pyx.c"
static PyMethodDef pyx_methods[] = {{"integrate", __pyx_pw_7kernels_1integrate, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef pyx_module = {PyModuleDef_HEAD_INIT, "chain_pyx", NULL, -1, pyx_methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_chain_pyx(void);

PyMODINIT_FUNC PyInit_chain_pyx(void)
{
	return PyModule_Create(&pyx_module);
}
