// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkDriver
public import LongLinkServer
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// An upload that was finished, or is about to be.
public struct FinishedUpload: Hashable, Sendable {
  /// The upload's ID, which is also the name of its folder in the directory.
  public let id: String
  /// The names of the upload's files in its folder, in the order of the parts. The folder also
  /// contains `fields.json`.
  public let files: [String]
  /// The number of the upload's bytes, those of fields included.
  public let byteCount: UInt64
}

extension FinishedUpload {
  /// `names` has an empty name for each part that is not a file.
  init(id: String, names: [String], _ byteCount: UInt64) {
    self.id = id
    files = names.filter { !$0.isEmpty }
    self.byteCount = byteCount
  }
}

extension LongLinkServer {
  /// Receives uploads, and keeps them in a directory. Call this before `start`; it traps
  /// afterwards, and if one of its message types has a handler already.
  ///
  /// It sets the routes of the message types 12 to 16, which `Protocols/uploads.proto` describes. A
  /// finished upload is the folder `ID` in the directory, with its files and a `fields.json`;
  /// unfinished uploads are in the directory `.unfinished`, and continue after a restart. Only the
  /// owner of the process can read the files.
  ///
  /// Files are read and written on `fileThreads` threads, from 1 to 64; in a simulation on the
  /// loop. Clients take turns on them.
  ///
  /// `mayFinish` is asked about each upload whose bytes are complete and have the client's hash,
  /// before it is finished. If it throws, the client gets that rejection; the upload stays
  /// unfinished, and can be finished later, aborted, or expires. It is called on the loop of the
  /// connection, and may be asked about an upload again. By default all uploads may finish.
  ///
  /// `onFinish` is called for each finished upload, on the loop of its connection, at most once. It
  /// must not block. If a crash interrupts a finish, the next start completes it without this call.
  ///
  /// A request that `rule` does not allow is refused with 403. Default: the rule of `require(_:)`.
  ///
  /// Throws `invalidConfiguration`, which names the field, if a limit is out of its range, or if
  /// the directory cannot be used: its parent must exist, and no other server may receive uploads
  /// in it.
  @discardableResult
  public func routeUploads(
    in directory: String, limits: UploadLimits = UploadLimits(), fileThreads: Int = 4,
    requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    onFinish: @escaping @Sendable (FinishedUpload) -> Void = { _ in },
    mayFinish: @escaping @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void = {
      _, _ throws(Rejection) in
    }
  ) throws(LongLinkError) -> UploadReceiver {
    try routeUploads(
      in: directory, limits: limits, fileThreads: fileThreads, requires: rule, waiting: nil,
      fileID: fileID, line: line, mayFinish: mayFinish, onFinish: onFinish)
  }

  /// Like the public function, with another limit on the bytes that wait to be written.
  func routeUploads(
    in directory: String, limits: UploadLimits, fileThreads: Int = 4,
    requires rule: AccessRule? = nil, waiting: WaitingBytes?,
    fileID: StaticString = #fileID, line: UInt = #line,
    mayFinish: @escaping @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void,
    onFinish: @escaping @Sendable (FinishedUpload) -> Void
  ) throws(LongLinkError) -> UploadReceiver {
    if let (field, reason) = limits.objection {
      throw .configuration("limits.\(field)", reason)
    }
    if fileThreads < 1 || fileThreads > 64 {
      throw .configuration("fileThreads", "it is not within 1 and 64")
    }
    let store: UploadStore
    do throws(FileError) {
      store = try UploadStore(in: directory, limits, now: UploadClock.systemTime())
    } catch {
      let text = error.errno == FileError.inUse ? "another server uses it" : error.description
      throw .configuration("directory", text)
    }
    let receiver = UploadReceiver(
      store, FileThreads(fileThreads), configuration.logger,
      waiting: waiting ?? WaitingBytes(UploadLimits.mostWaitingBytes), mayFinish, onFinish)
    receiver.route(on: self, requires: rule, fileID, line)
    add(receiver)
    return receiver
  }
}
