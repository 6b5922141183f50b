// SPDX-License-Identifier: Apache-2.0

#if !HTTP
// The types that a program uses first: their messages tell which package trait is missing.

/// A gateway that accepts a server's requests over HTTP. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct LongLinkHTTPGateway {}

/// The configuration of a gateway. It needs the package trait `HTTP`.
@available(*, unavailable, message: "Add traits: [\"HTTP\"] to the dependency on longlink.")
public struct HTTPGatewayConfiguration {}
#endif
