/* SPDX-License-Identifier: Apache-2.0 */
/* Gathered from the sources and the stacks of CPython 3.8 to 3.15. A name that ends in * stands for all that begin so. */
#include "exporters/names_fold.h"

#include <stddef.h>
#include <string.h>

#include "sampler/record.h"

/* Of the interpreter's file alone. */
static const char *const machinery[] = {
	/* the eval loop, and the ways into it */
	"_PyEval_EvalFrame*",
	"PyEval_EvalFrame*",
	"_PyEval_Vector",
	"_PyEval_EvalCode*",
	"PyEval_EvalCode*",
	"_TAIL_CALL_*",
	"function_code_fastcall",
	"_PyFunction_*",
	"PyFunction_*",
	"_PyJIT_Entry",
	"_Py_trampoline_func_start",
	"py_trampoline_evaluator",
	"call_function",
	"trace_call_function",
	"do_call_core",
	"call_trace*",
	"call_instrumentation*",
	"_PyEval_CallTracing",
	"PyEval_CallObject*",
	"PyEval_CallFunction",
	"PyEval_CallMethod",
	/* the call protocol */
	"PyObject_Call",
	"PyObject_CallFunction*",
	"PyObject_CallMethod*",
	"PyObject_CallNoArgs",
	"PyObject_CallOneArg",
	"PyObject_CallObject",
	"_PyObject_Call*",
	"_PyObject_FastCall*",
	"PyObject_Vectorcall*",
	"_PyObject_Vectorcall*",
	"_PyObject_MakeTpCall",
	"PyVectorcall_Call",
	"_PyVectorcall_*",
	"_PyStack_*",
	"object_vacall",
	"vectorcall_*",
	"callmethod",
	"_PyObject_CallMethod*",
	"method_vectorcall*",
	"method_call",
	"cfunction_vectorcall_*",
	"cfunction_call*",
	"cfunction_enter_call",
	"cmethod_call",
	"PyCFunction_Call",
	"_PyCFunction_*",
	"_PyMethodDef_*",
	"_PyMethodDescr_*",
	"methoddescr_call*",
	"classmethoddescr_call",
	"wrapperdescr_*",
	"wrapper_call*",
	"wrap_binaryfunc*",
	"wrap_ternaryfunc*",
	"wrap_unaryfunc",
	"wrap_inquirypred",
	"wrap_indexargfunc",
	"wrap_sq_*",
	"wrap_objobj*",
	"wrap_delitem",
	"wrap_hashfunc",
	"wrap_lenfunc",
	"wrap_call",
	"wrap_del",
	"wrap_delattr",
	"wrap_setattr",
	"wrap_next",
	"wrap_descr_*",
	"wrap_init",
	"wrap_buffer",
	"wrap_releasebuffer",
	"richcmp_lt",
	"richcmp_le",
	"richcmp_eq",
	"richcmp_ne",
	"richcmp_gt",
	"richcmp_ge",
	"slot_*",
	"_Py_slot_*",
	"_Py_VectorCall*",
	"_Py_BuiltinCall*",
	"_Py_CallBuiltinClass*",
	"_PyCallMethodDescriptor*",
	"call_method*",
	"call_unbound*",
	"call_maybe*",
	"call_attribute",
	"_Py_CheckFunctionResult",
	"_Py_CheckSlotResult",
	"_Py_EnterRecursiveCall*",
	"type_call",
	"type_vectorcall",
	"_PyType_Call*",
	"instancemethod_call",
	"type_new_init_subclass",
	"type_new_set_names",
	"init_subclass",
	"set_names",
	"PyMethod_*",
	"context_run",
	"context_tstate",
	/* generators and coroutines */
	"gen_send_ex*",
	"gen_send",
	"gen_iternext",
	"gen_iter_send",
	"_PyGen_Send",
	"PyGen_am_send",
	"PyGen_Send*",
	"PyIter_Send",
	"gen_throw*",
	"_gen_throw",
	"_gen_close",
	"gen_close*",
	"coro_wrapper_*",
	"async_gen_asend_*",
	"async_gen_athrow_*",
	"async_gen_anext",
	"_PyCoro_*",
	"gen_am_send",
	/* modules that are run and imported */
	"run_mod*",
	"run_eval_code_obj",
	"PyRun_*",
	"_PyRun_*",
	"pyrun_*",
	"pymain_*",
	"Py_RunMain",
	"Py_BytesMain",
	"Py_Main",
	"_Py_RunMain",
	"_Py_UnixMain",
	"builtin_exec*",
	"builtin_eval*",
	"builtin___import__*",
	"builtin___build_class__",
	"import_name",
	"import_find_and_load",
	"import_from",
	"PyImport_Import*",
	"_PyImport_*",
	"PyImport_Exec*",
	"exec_code_in_module",
	"import_run_*",
	"main",
	"resolve_name",
	"_PyEval_ImportName*",
	/* threads */
	"thread_run",
	"t_bootstrap",
	"pythread_wrapper",
	"thread_bootstate*",
	"do_start_new_thread",
};

/* Of the interpreter's file too: what looks up or computes where a type's own function says how. */
static const char *const leads[] = {
	"PyObject_GetAttr*",
	"_PyObject_GetAttr*",
	"PyObject_SetAttr*",
	"PyObject_GetOptionalAttr*",
	"_PyObject_LookupAttr*",
	"_PyObject_GetMethod*",
	"PyObject_GenericGetAttr",
	"PyObject_GenericSetAttr",
	"_PyObject_Generic*",
	"PyObject_HasAttr*",
	"_Py_type_getattro*",
	"_Py_module_getattro*",
	"module_getattro",
	"type_getattro",
	"type_setattro",
	"super_getattro",
	"do_super_lookup",
	"property_descr_get",
	"property_descr_set",
	"func_descr_get",
	"method_get",
	"builtin_getattr*",
	"builtin_setattr*",
	"builtin_hasattr*",
	"builtin_next*",
	"builtin_iter*",
	"builtin_isinstance*",
	"builtin_issubclass*",
	"builtin_delattr*",
	"builtin_hash",
	"builtin_len",
	"builtin_repr",
	"builtin_format*",
	"builtin_aiter",
	"builtin_anext*",
	"PyObject_GetItem",
	"PyObject_SetItem",
	"PyObject_DelItem",
	"PyObject_GetIter",
	"PyObject_GetAIter",
	"PyIter_Next*",
	"PySequence_Contains",
	"_PySequence_IterSearch",
	"PyObject_RichCompare*",
	"do_richcompare",
	"PyNumber_*",
	"binary_op*",
	"binary_iop*",
	"ternary_op*",
	"PyObject_IsTrue",
	"PyObject_Hash",
	"_PyObject_HashFast",
	"PyObject_Str",
	"PyObject_Repr",
	"PyObject_Format",
	"PyObject_IsInstance",
	"PyObject_IsSubclass",
	"object_isinstance",
	"object_issubclass",
	"object_recursive_isinstance",
	"recursive_isinstance",
	"_PyObject_RealIsInstance",
	"PyObject_Size",
	"PyObject_LengthHint",
	"PySequence_GetItem",
	"PySequence_Tuple",
	"PySequence_List",
	"PySequence_Fast",
	"PyMapping_*",
	"subtype_dealloc",
	"_Py_Dealloc",
	"PyObject_CallFinalizer*",
	"_PyGen_Finalize",
	"gen_dealloc",
	"_PyEvalFrameClearAndPop",
	"clear_thread_frame",
	"clear_gen_frame",
	"_PyFrame_Clear*",
	"frame_dealloc",
};

/* Whoever includes Python's headers: functions that are inlined, on the way to others. */
static const char *const inlined[] = {
	"Py_DECREF",
	"Py_XDECREF",
	"_Py_DECREF*",
	"_Py_XDECREF",
	"_PyObject_Vectorcall",
	"_PyObject_VectorcallTstate",
	"_PyObject_FastCall",
	"_PyObject_FastCallTstate",
	"_PyObject_CallNoArg",
	"_PyObject_CallOneArg",
	"_PyObject_CallMethodNoArgs",
	"_PyObject_CallMethodOneArg",
	"_PyVectorcall_FunctionInline",
};

/* What a program begins with, which every file of one has. */
static const char *const program_starts[] = {
	"_start", "_start_c", "__libc_start_main*", "__libc_start_call_main", "generic_start_main",
};

/* Of the C library: below the first function of a program or thread. */
static const char *const system_starts[] = {
	"_dl_start_user",   "start_thread",  "clone",        "clone3", "__clone", "__clone3",
	"__clone_internal", "__GI___clone*", "thread_start", "start",  "start_c", "libc_start_main_stage2",
};

static bool matches(const char *pattern, const char *name)
{
	size_t fixed = strcspn(pattern, "*");

	if (strncmp(pattern, name, fixed) != 0)
		return false;
	if (pattern[fixed] == '\0')
		return name[fixed] == '\0';
	return true;
}

static bool is_one_of(const char *const *patterns, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (matches(patterns[i], name))
			return true;
	return false;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool name_is_machinery(const char *name, uint32_t flags, bool innermost)
{
	/* CPython's own marks of its functions for perf: the Python frame itself is shown. */
	if (flags & MAPPING_MEMORY)
		return strncmp(name, "py::", 4) == 0;
	if (!innermost &&
	    (is_one_of(program_starts, COUNT(program_starts), name) || is_one_of(inlined, COUNT(inlined), name) ||
	     (flags & MAPPING_SYSTEM && is_one_of(system_starts, COUNT(system_starts), name))))
		return true;
	if (!(flags & MAPPING_INTERPRETER))
		return false;
	return is_one_of(machinery, COUNT(machinery), name) || (!innermost && is_one_of(leads, COUNT(leads), name));
}
