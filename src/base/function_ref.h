// SPDX-License-Identifier: Apache-2.0
//
// FunctionRef<R(Args...)>: borrows a callable for the length of a call, without allocating. Use it for
// parameters only; never store one. For plain functions write a lambda. Thread rule: as for the callable.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace gossamer {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_class_v<std::remove_cvref_t<F>> && std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::add_pointer_t<F>>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace gossamer
