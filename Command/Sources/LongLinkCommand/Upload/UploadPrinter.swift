// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkUploads

/// Prints the progress of `longlink upload` on standard error.
struct UploadPrinter {
  private static let width = 24

  private let isTerminal: Bool
  private var lastLine = ContinuousClock.now
  private var hasBar = false

  init(isTerminal: Bool = isatty(STDERR_FILENO) == 1) {
    self.isTerminal = isTerminal
  }

  /// Draws the bar again, or prints a line if the last one is a second old.
  mutating func show(_ progress: UploadProgress) {
    if isTerminal {
      hasBar = true
      Output.progress(UploadPrinter.bar(of: progress) + UploadPrinter.text(of: progress))
    } else if ContinuousClock.now - lastLine >= .seconds(1) {
      lastLine = .now
      Output.error(UploadPrinter.text(of: progress))
    }
  }

  /// Leaves the line of the bar.
  mutating func finish() {
    if hasBar { try? FileHandle.standardError.write(contentsOf: Data("\n".utf8)) }
    hasBar = false
  }

  /// `#` for what the server has, `-` for what has been sent.
  static func bar(of progress: UploadProgress) -> String {
    guard let total = progress.total, total > 0 else { return "" }
    func place(_ bytes: UInt64) -> Int {
      Int(Double(bytes) / Double(total) * Double(width))
    }
    let (stored, sent) = (place(progress.stored), place(progress.sent))
    return "["
      + String(repeating: "#", count: stored) + String(repeating: "-", count: sent - stored)
      + String(repeating: " ", count: width - sent) + "] "
  }

  /// The numbers in words.
  static func text(of progress: UploadProgress) -> String {
    var text = size(Double(progress.stored))
    if let total = progress.total {
      let percent = total == 0 ? 100 : Int(Double(progress.stored) / Double(total) * 100)
      text = "\(percent) %, \(text) of \(size(Double(total)))"
    }
    if let rate = progress.bytesPerSecond { text += ", \(size(rate))/s" }
    if let left = progress.timeLeft { text += ", \(Int((left / .seconds(1)).rounded(.up))) s left" }
    return text
  }

  /// A number of bytes with three digits or so, such as `12.3 MB`.
  private static func size(_ bytes: Double) -> String {
    var (value, unit) = (bytes, 0)
    let units = ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000, unit + 1 < units.count {
      value /= 1000
      unit += 1
    }
    return String(format: unit == 0 ? "%.0f %@" : "%.1f %@", value, units[unit])
  }
}
