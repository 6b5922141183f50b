// SPDX-License-Identifier: Apache-2.0

#if !Operations
public import LongLink
public import LongLinkServer

// The names that a program begins with, so that the compiler says what is missing.

extension LongLinkServer {
  /// Unavailable without the package trait `Operations`. With it, returns this server as a service
  /// that a `ServiceGroup` runs.
  @available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
  public func service() -> Never { fatalError() }
}

extension LongLinkClient {
  /// Unavailable without the package trait `Operations`. With it, returns this client as a service
  /// that a `ServiceGroup` runs.
  @available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
  public func service() -> Never { fatalError() }
}
#endif
