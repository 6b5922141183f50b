// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCommandSupport
import Synchronization

/// Prints events, each line with the time since the start.
final class Timeline: Sendable {
  private let start = ContinuousClock.now
  private let isColoured: Bool
  private let checks = Mutex(0)

  init(isColoured: Bool) {
    self.isColoured = isColoured
  }

  /// Whether standard output is a terminal whose user wants colour (no-color.org).
  static var wantsColour: Bool {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty
      && environment["TERM"] != "dumb"
  }

  /// Begins a chapter.
  func chapter(_ title: String) throws {
    try Output.line("")
    try print(paint(title, "1;36"))
  }

  /// Prints an event.
  func tell(_ text: String) throws {
    try print("  \(text)")
  }

  /// Prints a statement; throws if it does not hold.
  func check(_ isSo: Bool, _ text: String, otherwise found: @autoclosure () -> String) throws {
    guard isSo else { throw DemoFailure("'\(text)' does not hold: \(found())") }
    checks.withLock { $0 += 1 }
    try print("\(paint("✓", "32")) \(text)")
  }

  /// Says how many statements held, and what to do next.
  func end() throws {
    // As it was called: Foundation has the whole path.
    let program = CommandLine.arguments[0]
    try Output.line(
      """

      \(checks.withLock { $0 }) checks passed. The command is \(program): try
        \(program) serve
      and in another terminal
        \(program) stream 6 --json --hex 080510e807
        \(program) help
      Now read "A first service" in README.md.
      """)
  }

  /// Prints the error that a request failed with; throws if it is not the expected one.
  func check(
    _ error: LongLinkError, is code: LongLinkError.Code, _ delivery: Delivery, _ text: String
  ) throws {
    try check(
      error.code == code && error.delivery == delivery,
      "\(text): \(code), delivery \(delivery.rawValue)", otherwise: "\(error)")
  }

  private func print(_ text: String) throws {
    let seconds = String(format: "%7.3f", (ContinuousClock.now - start) / .seconds(1))
    try Output.line("\(paint(seconds, "2"))  \(text)")
  }

  private func paint(_ text: String, _ colour: String) -> String {
    isColoured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
  }
}
