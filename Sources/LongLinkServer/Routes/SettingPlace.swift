// SPDX-License-Identifier: Apache-2.0

/// A line of a program.
struct SettingPlace {
  let fileID: StaticString
  let line: UInt

  init(_ fileID: StaticString, _ line: UInt) {
    self.fileID = fileID
    self.line = line
  }
}
