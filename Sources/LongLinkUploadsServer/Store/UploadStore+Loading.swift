// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// Loads the uploads that an earlier run has left.
extension UploadStore {
  /// Whether a name is an ID of the store: 32 hexadecimal digits.
  static func isID(_ name: String) -> Bool {
    name.utf8.count == 32
      && name.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  func load(now: UInt64) throws(FileError) {
    for name in try finishedFolder.names() { loadFinish(name, now: now) }
    for name in try unfinished.names() {
      // Entries that are not the store's are left alone.
      guard Self.isID(name), (try? unfinished.kind(of: name)) == .folder else {
        counted { $0.unreadable += 1 }
        continue
      }
      do throws(UploadFailure) {
        try loadUpload(name, now: now)
      } catch {
        counted { $0.unreadable += 1 }
      }
    }
  }

  private func loadFinish(_ name: String, now: UInt64) {
    // The rest of a record that was being written at a crash.
    if name.first == ".", Self.isID(String(name.dropFirst())) {
      try? finishedFolder.removeFile(name)
      return
    }
    guard Self.isID(name),
      let bytes = try? finishedFolder.contents(of: name, limit: Self.mostRecordBytes),
      let record = try? StoredFinish(decodingBytes: bytes)
    else { return counted { $0.unreadable += 1 } }
    // A record is kept for at most a lifetime, even if the clock was set back.
    guard record.expiresAtMs > now, record.expiresAtMs <= now + lifetime else {
      try? finishedFolder.removeFile(name)
      return
    }
    remember(record, name)
  }

  private func loadUpload(_ id: String, now: UInt64) throws(UploadFailure) {
    let folder = try filing { () throws(FileError) in try unfinished.folder(id) }
    let bytes = contents(of: Self.requestName, in: folder)
    let state = (try? StateFile.read(in: folder)) ?? nil
    let isInPlace = table.withLock(of: self) { $0.finished[id] != nil }
    // The folder is not a complete upload: its create was not answered, it is half removed, or its
    // files were moved.
    guard !isInPlace, let bytes, let stored = try? StoredUpload(decodingBytes: bytes),
      let request = stored.request, var state
    else {
      _ = try filing { () throws(FileError) in try unfinished.removeFolder(id) }
      return
    }
    if state.sha256.isEmpty {
      guard state.expiresAtMs > now else {
        _ = try filing { () throws(FileError) in try unfinished.removeFolder(id) }
        return counted { $0.expired += 1 }
      }
      // The files may have fewer bytes, if some were removed from outside.
      state.offset = try filing { () throws(FileError) in
        min(state.offset, try PartFiles(PartLayout(request.parts), in: folder).available())
      }
      state.expiresAtMs = min(state.expiresAtMs, now + lifetime)
    }
    let upload = UnfinishedUpload(
      id: id, request, of: stored.principal, in: unfinished, quotas, state, uncut: 0)
    quotas.restoreUpload(
      of: stored.principal, requestSize: upload.requestSize, files: upload.layout.fileCount,
      bytes: state.offset)
    table.withLock(of: self) { table in
      table.uploads[id] = upload
      if !upload.key.isEmpty {
        table.keys[Key(principal: upload.principal, key: upload.key)] = id
      }
      if state.sha256.isEmpty { table.counters.restored += 1 }
    }
    // If this fails, it is done when the client asks again.
    if !state.sha256.isEmpty, (try? settle(upload, now: now)) != nil {
      _ = try? unfinished.removeFolder(id)
    }
  }

  private func contents(of name: String, in folder: Folder) -> [UInt8]? {
    try? folder.contents(of: name, limit: 2 * UploadLimits.mostRequestBytes)
  }
}
