/* SPDX-License-Identifier: Apache-2.0 */
/* The module chain_cxx: templates, whose names want demangling, and exceptions that are thrown three functions deep and caught. */
#define Py_LIMITED_API 0x03060000
#include <Python.h>

#include <stdexcept>
#include <vector>

#define APART __attribute__((noinline))

namespace work
{
template <typename T> class Kernel
{
      public:
	explicit Kernel(int size) : values(static_cast<size_t>(size), T(1))
	{
	}

	APART T reduce(int rounds)
	{
		T sum = 0;

		for (int i = 0; i < rounds; i++)
			for (T value : values)
				sum = sum / 3 + value;
		return sum;
	}

      private:
	std::vector<T> values;
};

template <typename T, int Size> APART T run(int rounds)
{
	Kernel<T> kernel(Size);

	return kernel.reduce(rounds) + 1;
}

APART int throw_inner(int number)
{
	if (number >= 0)
		throw std::runtime_error("as expected");
	return number;
}

APART int throw_middle(int number)
{
	return throw_inner(number) + 1;
}

APART int throw_outer(int times)
{
	int caught = 0;

	for (int i = 0; i < times; i++) {
		try {
			caught += throw_middle(i);
		} catch (const std::exception &) {
			caught++;
		}
	}
	return caught;
}
} // namespace work

extern "C" {
static PyObject *cxx_templates(PyObject *, PyObject *args)
{
	int rounds;

	if (!PyArg_ParseTuple(args, "i", &rounds))
		return nullptr;
	return PyFloat_FromDouble(work::run<double, 1000>(rounds) + static_cast<double>(work::run<float, 1000>(rounds)));
}

static PyObject *cxx_throws(PyObject *, PyObject *args)
{
	int times;

	if (!PyArg_ParseTuple(args, "i", &times))
		return nullptr;
	return PyLong_FromLong(work::throw_outer(times));
}

static PyMethodDef cxx_methods[] = {
	{"templates", cxx_templates, METH_VARARGS, nullptr}, {"throws", cxx_throws, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr},
};

static struct PyModuleDef cxx_module = {PyModuleDef_HEAD_INIT, "chain_cxx", nullptr, -1, cxx_methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_chain_cxx(void)
{
	return PyModule_Create(&cxx_module);
}
}
