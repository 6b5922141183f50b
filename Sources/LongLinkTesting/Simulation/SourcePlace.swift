// SPDX-License-Identifier: Apache-2.0

/// A place in the source of a test, such as `EchoTests.swift:42`.
package struct SourcePlace: Hashable, Sendable {
  /// The module and the name of the file, as in `#fileID`.
  package let fileID: String
  /// The number of the line, from 1.
  package let line: Int

  /// Makes a place, by default the place of the call.
  package init(fileID: String = #fileID, line: Int = #line) {
    self.fileID = fileID
    self.line = line
  }
}

extension SourcePlace: CustomStringConvertible {
  /// The name of the file and the number of the line.
  package var description: String {
    "\(fileID.split(separator: "/").last ?? ""):\(line)"
  }
}
