// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The names that a program begins with, so that the compiler says what is missing.

/// A client of HTTP services, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPService {}

/// A request of HTTP, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPRequest {}

/// The configuration of an HTTP service, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPConfiguration {}

/// One method of an HTTP service, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPEndpoint<Input, Reply> {}

/// How a client reaches a gateway over HTTP, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPWayOptions {}
#endif
