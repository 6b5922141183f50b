// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport

/// The content of the files that a configuration names, at one moment.
struct TLSFiles: Equatable, Sendable {
  /// The most bytes of a file.
  private static let limit = 4 << 20

  private var contents: [String: [UInt8]] = [:]

  /// Reads all of the files. It blocks.
  init(_ sources: [(field: String, source: TLSSource)]) throws(LongLinkError) {
    for (field, source) in sources {
      guard let path = source.path, contents[path] == nil else { continue }
      do throws(FileError) {
        let file = try OpenFile.read(path)
        let bytes = try file.read(TLSFiles.limit + 1, at: 0)
        guard bytes.count <= TLSFiles.limit else {
          throw FileError("read", path, errno: FileError.tooLarge)
        }
        contents[path] = bytes
      } catch {
        throw .configuration(field, "\(error)")
      }
    }
  }

  /// The bytes of a source that was read.
  func bytes(of source: TLSSource) -> [UInt8] {
    switch source {
    case .bytes(let bytes): bytes
    case .file(let path): contents[path] ?? []
    }
  }

  /// What tells whether files have changed: nil for one that is not there. It blocks.
  static func identities(_ paths: Set<String>) -> [String: FileIdentity?] {
    var identities: [String: FileIdentity?] = [:]
    for path in paths { identities[path] = .some(try? FileIdentity(at: path)) }
    return identities
  }
}
