// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The types that a program uses first: their messages tell which package trait is missing.

/// A client of HTTP services. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPService {}

/// An HTTP request. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPRequest {}

/// The configuration of an HTTP service. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPConfiguration {}

/// One method of an HTTP service. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPEndpoint<Input, Reply> {}

/// How a client reaches a gateway over HTTP. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPWayOptions {}
#endif
