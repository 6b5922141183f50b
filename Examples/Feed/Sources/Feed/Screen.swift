// SPDX-License-Identifier: Apache-2.0

import FeedMessages
import Foundation
import LongLinkUploads

/// The terminal: lines, and a bar below them that is drawn again and again.
struct Screen {
  private static let width = 30
  private let isTerminal = isatty(STDOUT_FILENO) == 1

  /// Prints a node, and how many of them there are.
  func show(_ node: Node, of count: Int) {
    line("\(node.number). \(node.title)")
    bar(Double(node.number) / Double(max(1, count)), "\(node.number) of \(count)")
  }

  /// Shows how far an upload is.
  func show(_ progress: UploadProgress) {
    guard let total = progress.total, total > 0 else { return }
    let part = Double(progress.stored) / Double(total)
    bar(part, "\(Int(part * 100)) %")
  }

  func line(_ text: String) {
    write(isTerminal ? "\r\u{1B}[K\(text)\n" : "\(text)\n")
  }

  /// Leaves the line of the bar.
  func finish() {
    if isTerminal { write("\n") }
  }

  private func bar(_ part: Double, _ text: String) {
    guard isTerminal else { return }
    let full = Int((part * Double(Screen.width)).rounded(.down))
    let bar = String(repeating: "#", count: full).padding(
      toLength: Screen.width, withPad: " ", startingAt: 0)
    write("\r\u{1B}[K[\(bar)] \(text)")
  }

  private func write(_ text: String) {
    FileHandle.standardOutput.write(Data(text.utf8))
  }
}
