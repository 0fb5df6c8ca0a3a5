/* SPDX-License-Identifier: Apache-2.0 */
/* A module for Python whose native stacks are known: tests/native/mixed.py says which. Built in variants under names of their own (CHAIN), with the
 * stable interface of 3.6, so that one file is for all versions. */
#define Py_LIMITED_API 0x03060000
#include <Python.h>

#include "chain.h"

#define JOINED(a, b)  a##b
#define INIT(name)    JOINED(PyInit_, name)
#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)

static APART double shared_name(double of)
{
	double sum = 1;

	for (int i = 0; i < 30; i++)
		sum += of / (i + 2);
	return sum;
}

static PyObject *chain_deep(PyObject *self, PyObject *args)
{
	int rounds;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &rounds))
		return NULL;
	return PyFloat_FromDouble(deep_outer(rounds) + 1);
}

static PyObject *chain_product(PyObject *self, PyObject *args)
{
	int rounds;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &rounds))
		return NULL;
	return PyFloat_FromDouble(product_all(rounds) + 1);
}

static PyObject *chain_lines(PyObject *self, PyObject *args)
{
	int rounds;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &rounds))
		return NULL;
	return PyFloat_FromDouble(lines_outer(rounds) + shared_name(rounds));
}

static APART PyObject *call_inner(PyObject *function, int number)
{
	PyObject *result = PyObject_CallFunction(function, "i", number);

	if (!result)
		return NULL;
	Py_DECREF(result);
	return PyLong_FromLong(number);
}

/* Calls function(number), `times` times. */
static APART PyObject *call_outer(PyObject *function, int number, int times)
{
	PyObject *result = NULL;

	for (int i = 0; i < times; i++) {
		Py_XDECREF(result);
		result = call_inner(function, number);
		if (!result)
			return NULL;
	}
	return result;
}

static PyObject *chain_call(PyObject *self, PyObject *args)
{
	PyObject *function, *result;
	int number, times;

	(void)self;
	if (!PyArg_ParseTuple(args, "Oii", &function, &number, &times))
		return NULL;
	result = call_outer(function, number, times);
	if (!result)
		return NULL;
	Py_DECREF(result);
	Py_RETURN_NONE;
}

static PyObject *chain_nap(PyObject *self, PyObject *args)
{
	PyThreadState *state;
	double seconds;
	long result;

	(void)self;
	if (!PyArg_ParseTuple(args, "d", &seconds))
		return NULL;
	state = PyEval_SaveThread();
	result = nap_outer(seconds);
	PyEval_RestoreThread(state);
	return PyLong_FromLong(result);
}

static PyObject *chain_read(PyObject *self, PyObject *args)
{
	PyThreadState *state;
	long result;
	int fd;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &fd))
		return NULL;
	state = PyEval_SaveThread();
	result = read_outer(fd);
	PyEval_RestoreThread(state);
	return PyLong_FromLong(result);
}

/* With the GIL released. */
static PyObject *chain_spin(PyObject *self, PyObject *args)
{
	PyThreadState *state;
	double seconds, result;

	(void)self;
	if (!PyArg_ParseTuple(args, "d", &seconds))
		return NULL;
	state = PyEval_SaveThread();
	result = spin_outer(seconds);
	PyEval_RestoreThread(state);
	return PyFloat_FromDouble(result);
}

static PyMethodDef chain_methods[] = {
	{"deep", chain_deep, METH_VARARGS, NULL},   {"product", chain_product, METH_VARARGS, NULL},
	{"lines", chain_lines, METH_VARARGS, NULL}, {"call", chain_call, METH_VARARGS, NULL},
	{"nap", chain_nap, METH_VARARGS, NULL},     {"read", chain_read, METH_VARARGS, NULL},
	{"spin", chain_spin, METH_VARARGS, NULL},   {NULL, NULL, 0, NULL},
};

static struct PyModuleDef chain_module = {
	PyModuleDef_HEAD_INIT, TEXT(CHAIN), NULL, -1, chain_methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC INIT(CHAIN)(void);

PyMODINIT_FUNC INIT(CHAIN)(void)
{
	return PyModule_Create(&chain_module);
}
