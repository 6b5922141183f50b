// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// What the recorder of a loop had of some links when an operation failed. Errors share it.
package final class LinkRecording: Sendable {
  private let snapshot: RecorderSnapshot
  private let links: Set<UInt32>

  init(_ snapshot: RecorderSnapshot, of links: Set<UInt32>) {
    self.snapshot = snapshot
    self.links = links
  }

  /// The bytes of a file, as `Protocols/recording.md` specifies it.
  package var file: [UInt8] { RecordingWriter.file([snapshot], names: [:], links: links) }
}

extension Link {
  /// What the recorder has of this link; nil if nothing is recorded.
  package var recording: LinkRecording? {
    #if Operations
    guard recordedAs != 0, let snapshot = loop.recorded else { return nil }
    return LinkRecording(snapshot, of: [recordedAs])
    #else
    return nil
    #endif
  }
}

extension Requests {
  /// The most links of a client that an error's recording has.
  private static let mostRecorded = 8

  /// Notes a link that requests can go over, for recordings.
  func noteForRecordings(_ link: Link) {
    #if Operations
    if recordedLinks.contains(link.recordedAs) { return }
    recordedLinks.append(link.recordedAs)
    if recordedLinks.count > Requests.mostRecorded { recordedLinks.removeFirst() }
    #endif
  }

  /// What the recorder has of a link, and of those that the requests went over last; nil if nothing
  /// is recorded.
  func recording(of link: Link?) -> LinkRecording? {
    #if Operations
    var links = Set(recordedLinks)
    if let link { links.insert(link.recordedAs) }
    links.remove(0)
    guard !links.isEmpty, let snapshot = loop.recorded else { return nil }
    return LinkRecording(snapshot, of: links)
    #else
    return nil
    #endif
  }
}
