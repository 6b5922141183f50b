// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The names that a program begins with, so that the compiler says what is missing.

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct LongLinkHTTPGateway {}

/// Needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPGatewayConfiguration {}
#endif
