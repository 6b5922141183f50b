// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkPOSIX

/// The memory of the process.
package enum SystemMemory {
  /// Gives memory back to the system that was freed and that the C library keeps, where it can be
  /// told to. It takes milliseconds: for when memory is short.
  package static func returnFree() {
    cll_return_free_memory()
  }
}
