// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport
import Synchronization

@testable import LongLinkUploadsServer

/// Lets one step of a store fail, and no other.
final class Fault: Sendable {
  private let step: Int
  private let errno: CInt
  private let count = Mutex(0)

  init(at step: Int, errno: CInt) {
    self.step = step
    self.errno = errno
  }

  var hasHappened: Bool { count.withLock { $0 } >= step }

  var probe: FileProbe {
    { [self] (step: FileStep) throws(FileError) in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number == self.step { throw FileError("do", step.path, errno: errno) }
    }
  }
}

/// The end of a machine in front of a step of a store: that step and all later ones fail.
///
/// Then files lose what was not flushed, and get bytes that nobody wrote in its place, and entries
/// that were made lose their names if their folders were not flushed.
final class Crash: Sendable {
  fileprivate struct State {
    var count = 0
    /// The sizes of files at the moment, and those that are durable.
    var sizes: [String: UInt64] = [:]
    var durable: [String: UInt64] = [:]
    /// Entries whose names are not durable.
    var newNames: Set<String> = []
  }

  private let step: Int
  private let directory: UploadDirectory
  private let state = Mutex(State())

  init(at step: Int, in directory: UploadDirectory) {
    self.step = step
    self.directory = directory
  }

  var hasHappened: Bool { state.withLock { $0.count } >= step }

  var probe: FileProbe {
    { [self] (step: FileStep) throws(FileError) in
      let isOver = state.withLock { state in
        state.count += 1
        guard state.count < self.step else { return true }
        state.note(step)
        return false
      }
      if isOver { throw FileError("do", step.path, errno: EIO) }
    }
  }

  func loseWhatWasNotFlushed() {
    let state = state.withLock { $0 }
    for (path, size) in state.sizes {
      guard var bytes = directory.file(path) else { continue }
      let durable = Int(state.durable[path] ?? 0)
      guard size > durable, bytes.count > durable, !path.hasSuffix("/state") else { continue }
      // The system may have made the file longer before it wrote the bytes.
      for index in durable..<bytes.count { bytes[index] = 0xEE }
      if path.utf8.count % 2 == 0 { bytes.removeSubrange(durable...) }
      directory.write(bytes, to: path)
    }
    for path in state.newNames {
      try? FileManager.default.removeItem(atPath: "\(directory.path)/\(path)")
    }
  }
}

extension Crash.State {
  fileprivate mutating func note(_ step: FileStep) {
    switch step.action {
    case .makeFolder, .createFile:
      newNames.insert(step.path)
      sizes[step.path] = 0
      durable[step.path] = 0
    case .write(let offset, let count):
      sizes[step.path] = max(sizes[step.path] ?? 0, offset + UInt64(count))
    case .truncate(let size):
      sizes[step.path] = size
      durable[step.path] = min(durable[step.path] ?? size, size)
    case .sync:
      durable[step.path] = sizes[step.path]
    case .syncFolder:
      let prefix = step.path.isEmpty ? "" : step.path + "/"
      newNames = newNames.filter { name in
        !(name.hasPrefix(prefix) && !name.dropFirst(prefix.count).contains("/"))
      }
    case .rename(let name):
      moved(step.path, to: name)
    case .remove:
      newNames.remove(step.path)
      sizes[step.path] = nil
      durable[step.path] = nil
    }
  }

  /// A file system moves a name in one step, and keeps what was flushed.
  private mutating func moved(_ old: String, to new: String) {
    func path(_ path: String) -> String {
      path == old || path.hasPrefix(old + "/") ? new + path.dropFirst(old.count) : path
    }
    sizes = Dictionary(uniqueKeysWithValues: sizes.map { (path($0.key), $0.value) })
    durable = Dictionary(uniqueKeysWithValues: durable.map { (path($0.key), $0.value) })
    newNames = Set(newNames.map(path))
  }
}
