// SPDX-License-Identifier: Apache-2.0

/// Why the server rejects a message: its own response codes, from 1000.
public enum ChatError: UInt32, Error {
  /// It is empty.
  case emptyText = 1000
  /// It is longer than 4,000 bytes.
  case textTooLong = 1001
}
