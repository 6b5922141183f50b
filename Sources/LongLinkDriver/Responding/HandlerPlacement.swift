// SPDX-License-Identifier: Apache-2.0

/// Where an asynchronous handler runs.
public enum HandlerPlacement: Sendable {
  /// On the loop of the connection, which the handler must not block.
  case connectionLoop
  /// On the Swift runtime's global pool.
  case globalPool
  /// On the given executor.
  case executor(any TaskExecutor)
}
