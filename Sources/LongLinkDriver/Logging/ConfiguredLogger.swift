// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkTransport

/// The logger of a configuration: the one that was set, or a default.
package struct ConfiguredLogger: Sendable {
  /// What is logged to; setting it, or its level, makes it the user's own.
  package var logger: Logger {
    didSet { isDefault = false }
  }
  private var isDefault = true

  package init(label: String) {
    logger = Logger(label: label)
  }

  /// Leaves warnings alone to a default logger on a loop that is to be quiet.
  package mutating func settle(on loop: EventLoop) {
    guard isDefault, loop.configuration.isQuiet else { return }
    logger.logLevel = max(.warning, logger.logLevel)
  }
}
