// SPDX-License-Identifier: Apache-2.0
#include "host/posix/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "base/check.h"

namespace gossamer::host {
namespace {

std::atomic<bool>& module_open() {
  static std::atomic<bool> open = false;
  return open;
}

}  // namespace

Result<void*> open_module(const std::string& path, const std::string& symbol, ModuleNames names) {
  CHECK(path.find('/') != std::string::npos, path);  // else the loader would look elsewhere
  const auto failed = [&](std::string what) {
    const char* words = dlerror();
    return Error{.where = path, .what = std::move(what), .got = words == nullptr ? "" : words};
  };
  // RTLD_NOW: what is missing shows here, and not in the middle of a run.
  const int first = names == ModuleNames::kItsOwn ? RTLD_DEEPBIND : 0;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | first);
  if (library == nullptr) return failed("cannot open a module of this program");
  module_open() = true;
  (void)dlerror();
  void* const address = dlsym(library, symbol.c_str());
  if (address == nullptr) return failed("this module is not one of this program");
  return address;
}

bool any_module_open() { return module_open(); }

void end_process(int status) {
  (void)std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace gossamer::host
