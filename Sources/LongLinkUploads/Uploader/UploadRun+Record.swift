// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport

extension UploadRun {
  /// Takes key, ID and generation from the record, if there is one.
  func takeUpRecord(_ prepared: PreparedUpload) async throws(UploadError) {
    key = randomText()
    guard let path = options.record else { return }
    recordParts = prepared.recordParts
    let content = await loop.offloading {
      Result { () throws(FileError) in
        try SmallFile(path).read(limit: UploadRecord.limit)
      }
    }
    let bytes: [UInt8]?
    do throws(FileError) {
      bytes = try content.get()
    } catch {
      throw UploadError.record(error, path)
    }
    guard let bytes else { return }
    guard let found = UploadRecord(bytes) else {
      throw UploadError(.otherRecord, path: path, detail: "it is not a record of an upload")
    }
    guard found.parts == recordParts else {
      throw UploadError(.otherRecord, path: path, detail: "its parts are not these")
    }
    (key, id, generation) = (found.key, found.id, found.generation)
    record = found
  }

  /// Writes the record if it has changed, and if `UploadOptions.record` is set.
  func keepRecord() async throws(UploadError) {
    guard let path = options.record else { return }
    let new = UploadRecord(key: key, id: id, generation: generation, parts: recordParts)
    guard new != record else { return }
    let suffix = randomText()
    let outcome = await loop.offloading {
      Result { () throws(FileError) in
        try SmallFile(path).replace(with: new.bytes, suffix: suffix)
      }
    }
    do throws(FileError) {
      try outcome.get()
    } catch {
      throw UploadError.record(error, path)
    }
    record = new
  }

  /// Makes another key, because the server has forgotten the old one.
  func renewKey() { key = randomText() }

  /// Removes the record, because the upload has ended.
  func removeRecord() async {
    guard let path = options.record else { return }
    await loop.offloading { SmallFile(path).remove() }
  }

  private func randomText() -> String {
    loop.randomKey().hexadecimal
  }
}

extension UploadError {
  fileprivate static func record(_ failure: FileError, _ path: String) -> UploadError {
    UploadError(.recordFailed, path: path, detail: failure.reason)
  }
}
