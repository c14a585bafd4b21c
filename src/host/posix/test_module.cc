// SPDX-License-Identifier: Apache-2.0
//
// Modules for module_test.cc: one that opens, one that needs a library which is gone by then, and that
// library.
#if defined(TEST_GONE_LIBRARY)

extern "C" int gossamer_test_gone();
int gossamer_test_gone() { return 1; }

#elif defined(TEST_NEEDS_GONE_LIBRARY)

extern "C" int gossamer_test_gone();
extern "C" int gossamer_test_answer();
int gossamer_test_answer() { return gossamer_test_gone(); }

#else

extern "C" int gossamer_test_answer();
int gossamer_test_answer() { return 42; }

// The program has one of this name, too.
extern "C" int gossamer_test_shared_name();
int gossamer_test_shared_name() { return 2; }
extern "C" int gossamer_test_used_name();
int gossamer_test_used_name() { return gossamer_test_shared_name(); }

#endif
