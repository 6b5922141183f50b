// SPDX-License-Identifier: Apache-2.0

#if !Operations
// The types that a program uses first: their messages tell which package trait is missing.

/// A port on which people and programs watch and operate a server. It needs the package trait
/// `Operations`.
@available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
public struct OperationsPort {}

/// The configuration of an operations port. It needs the package trait `Operations`.
@available(*, unavailable, message: "Add traits: [\"Operations\"] to the dependency on longlink.")
public struct OperationsConfiguration {}
#endif
