// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// The state of a file at one moment: its identity, and when anything about it changed last.
///
/// Two states also differ if the file's permissions, owner or links were changed, or its content
/// was changed and its modification time set back.
package struct FileState: Hashable, Sendable {
  package let identity: FileIdentity
  /// The time of the last change of the file or of its attributes, in nanoseconds since 1970.
  package let changed: Int64

  /// Reads the state of the file at a path. Throws for anything but a regular file. It blocks.
  package init(at path: String) throws(FileError) {
    var status = stat()
    try FileCall.retrying("stat", path) { unsafe stat(path, &status) }
    identity = try FileIdentity(status, path)
    #if canImport(Darwin)
    let time = status.st_ctimespec
    #else
    let time = status.st_ctim
    #endif
    changed = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}
