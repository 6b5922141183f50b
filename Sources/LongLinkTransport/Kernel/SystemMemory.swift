// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkPOSIX

/// The memory of the process.
package enum SystemMemory {
  /// Returns freed memory that the C library keeps to the system, if the library supports that. It
  /// takes milliseconds, so use it only if memory is short.
  package static func returnFree() {
    cll_return_free_memory()
  }

  /// Keeps the C library from returning the memory of each large body to the system as soon as it
  /// is free. Only the first call has an effect.
  static let reusesFree: Void = cll_reuse_free_memory()
}
