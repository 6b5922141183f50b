// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkTransport

/// The logger of a configuration: the user's, or a default.
package struct ConfiguredLogger: Sendable {
  /// Setting the logger or its level makes it the user's.
  package var logger: Logger {
    didSet { isDefault = false }
  }
  private var isDefault = true

  package init(label: String) {
    logger = Logger(label: label)
  }

  /// Limits a default logger to warnings and errors if the loop is configured to be quiet.
  package mutating func settle(on loop: EventLoop) {
    guard isDefault, loop.configuration.isQuiet else { return }
    logger.logLevel = max(.warning, logger.logLevel)
  }
}
