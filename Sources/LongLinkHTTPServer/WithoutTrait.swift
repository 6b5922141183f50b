// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The names that a program begins with, so that the compiler says what is missing.

/// A gateway that takes a server's requests over HTTP, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct LongLinkHTTPGateway {}

/// The configuration of a gateway, which needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPGatewayConfiguration {}
#endif
