// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The names that a program begins with, so that the compiler says what is missing.

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPService {}

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPRequest {}

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPConfiguration {}

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPEndpoint<Input, Reply> {}

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPWayOptions {}
#endif
