// SPDX-License-Identifier: Apache-2.0

/// Why the server does not take a message: the codes of its answers from 1000 on.
public enum ChatError: UInt32, Error {
  /// There is nothing in it.
  case emptyText = 1000
  /// It is longer than 4,000 bytes.
  case textTooLong = 1001
}
