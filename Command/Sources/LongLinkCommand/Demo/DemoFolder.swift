// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// A folder for the files of a chapter, which is removed with the value.
final class DemoFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "longlink-demo-\(UInt64.random(in: 0 ... .max))"
    try FileProblem.naming(path) { [path] in
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }
}
