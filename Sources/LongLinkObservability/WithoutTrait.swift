// SPDX-License-Identifier: Apache-2.0

#if !Operations
// The names that a program begins with, so that the compiler says what is missing.

/// Metrics of clients and servers, which need the package trait `Operations`.
@available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
public struct LongLinkMetrics {}

/// Traces of clients and servers, which need the package trait `Operations`.
@available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
public struct LongLinkTracing {}
#endif
