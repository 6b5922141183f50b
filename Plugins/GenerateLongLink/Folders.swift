// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// The folders of a package's targets.
struct Folders {
  private let root: String
  private let targets: [(path: String, module: String)]

  init(_ package: Package) {
    root = package.directoryURL.standardizedFileURL.path
    targets = package.targets.compactMap { $0 as? any SourceModuleTarget }.map {
      ($0.directoryURL.standardizedFileURL.path, $0.moduleName)
    }
  }

  /// The absolute path of a file or folder given relative to the package.
  func path(_ name: String) -> String {
    URL(filePath: name, relativeTo: URL(filePath: root, directoryHint: .isDirectory))
      .standardizedFileURL.path
  }

  /// `FOLDER:MODULE` for the folder of a target's sources, or one inside it.
  func folder(_ name: String, _ option: String) throws -> String {
    let path = path(name)
    guard path.hasPrefix(root + "/") else {
      throw UsageError("--\(option) \(name): the folder is not in the package")
    }
    let relative = String(path.dropFirst(root.count + 1))
    let target = targets.filter { path == $0.path || path.hasPrefix($0.path + "/") }
      .max { $0.path.count < $1.path.count }
    return "\(relative):\(target?.module ?? Folders.module(relative))"
  }

  /// The module of a target without sources, which SwiftPM does not list yet: named like the first
  /// folder below `Sources` or `Tests`, elsewhere like the last folder.
  private static func module(_ path: String) -> String {
    let parts = path.split(separator: "/")
    let isUsual = parts.count > 1 && ["Sources", "Tests"].contains(parts[0])
    let name = isUsual ? parts[1] : parts[parts.count - 1]
    return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }
}
