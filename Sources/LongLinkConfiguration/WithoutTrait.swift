// SPDX-License-Identifier: Apache-2.0

#if !Operations
// The name that a program begins with, so that the compiler says what is missing.

/// The configuration of clients and servers from the environment and files, which needs the package
/// trait `Operations`.
@available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
public struct LiveConfiguration {}
#endif
