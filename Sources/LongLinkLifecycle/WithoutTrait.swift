// SPDX-License-Identifier: Apache-2.0

#if !Operations
public import LongLink
public import LongLinkServer

// The names that a program begins with, so that the compiler says what is missing.

extension LongLinkServer {
  /// Returns this server as a service, which needs the package trait `Operations`.
  @available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
  public func service() -> Never { fatalError() }
}

extension LongLinkClient {
  /// Returns this client as a service, which needs the package trait `Operations`.
  @available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
  public func service() -> Never { fatalError() }
}
#endif
