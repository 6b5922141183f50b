// SPDX-License-Identifier: Apache-2.0

#if !SQLite
// The name that a program begins with, so that the compiler says what is missing.

/// A store of requests that run once in an SQLite file, which needs the package trait `SQLite`.
@available(*, unavailable, message: "Add traits: [\"SQLite\"] to the dependency on longlink.")
public struct SQLiteOnceStore {}
#endif
