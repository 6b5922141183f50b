// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
package import LongLinkUploadMessages
internal import Synchronization

extension UploadStore {
  /// Answers a create request; a new upload gets the ID `id`.
  package func create(
    _ request: CreateRequest, id: String, of principal: String, now: UInt64
  ) throws(UploadFailure) -> CreateResponse {
    try check(request)
    let isSuspended = table.withLock(of: self) { $0.isSuspended }
    if isSuspended { throw .tooMany("the server is shutting down") }
    let key = request.key.isEmpty ? nil : Key(principal: principal, key: request.key)
    guard let key else { return try make(request, id, principal, now: now) }
    let known: Result<String?, UploadFailure> = table.withLock(of: self) { table in
      if let id = table.keys[key] { return .success(id) }
      guard table.creating.insert(key).inserted else {
        return .failure(.tooMany("an upload with this key is being created"))
      }
      return .success(nil)
    }
    if let known = try known.get() { return try again(request, known, now: now) }
    defer { table.withLock(of: self) { _ = $0.creating.remove(key) } }
    return try make(request, id, principal, now: now)
  }

  // MARK: Rules

  /// Throws if no upload can be created from the request. Does not block.
  func check(_ request: CreateRequest) throws(UploadFailure) {
    if request.parts.isEmpty { throw .malformed("there are no parts") }
    guard request.key.utf8.count <= UploadLimits.mostKeyBytes else {
      throw .malformed("the key has more than \(UploadLimits.mostKeyBytes) bytes")
    }
    guard request.parts.count <= limits.maxParts else {
      throw .tooLarge("there are more than \(limits.maxParts) parts")
    }
    guard request.parts.dropLast().allSatisfy({ $0.size != nil }) else {
      throw .malformed("a part that is not the last one has no size")
    }
    try checkSizes(of: request.parts)
    let size = (try? request.encodedByteCount) ?? .max
    guard size <= UploadLimits.mostRequestBytes else {
      throw .tooLarge("the request has more than \(UploadLimits.mostRequestBytes) bytes")
    }
  }

  private func checkSizes(of parts: [Part]) throws(UploadFailure) {
    var total: UInt64 = 0
    var fields: UInt64 = 0
    for part in parts {
      let size = part.size ?? 0
      for text in [part.field, part.fileName, part.contentType]
      where text.utf8.count > UploadLimits.mostTextBytes {
        throw .tooLarge("a name or media type has over \(UploadLimits.mostTextBytes) bytes")
      }
      let (sum, overflows) = total.addingReportingOverflow(size)
      guard !overflows, sum <= limits.maxUploadBytes else {
        throw .tooLarge("an upload has at most \(limits.maxUploadBytes) bytes")
      }
      total = sum
      guard part.fileName.isEmpty else { continue }
      fields += size
      guard size <= UInt64(UploadLimits.mostFieldBytes), fields <= UploadLimits.mostFieldsBytes
      else { throw .tooLarge("the values of fields are too large") }
    }
  }

  // MARK: Answers

  /// Answers a create request whose key was used before.
  private func again(
    _ request: CreateRequest, _ id: String, now: UInt64
  ) throws(UploadFailure) -> CreateResponse {
    let hash = UnfinishedUpload.hash(of: request)
    if let upload = upload(id) {
      guard upload.requestHash == hash else { throw .conflict(offset: 0, generation: 0) }
      return response(id, upload.factsNow, now: now)
    }
    let record = try finish(of: id)
    guard record.partsSha256 == hash else { throw .conflict(offset: 0, generation: 0) }
    return CreateResponse(
      id: id, generation: record.generation, offset: record.size,
      expiresInMs: record.expiresAtMs - min(now, record.expiresAtMs),
      mostAppend: UInt64(limits.maxAppendBytes))
  }

  private func response(
    _ id: String, _ facts: UnfinishedUpload.Facts, now: UInt64
  ) -> CreateResponse {
    CreateResponse(
      id: id, generation: facts.generation, offset: facts.offset,
      expiresInMs: facts.expiresAt - min(now, facts.expiresAt),
      mostAppend: UInt64(limits.maxAppendBytes))
  }

  /// Creates an upload.
  private func make(
    _ request: CreateRequest, _ id: String, _ principal: String, now: UInt64
  ) throws(UploadFailure) -> CreateResponse {
    let state = StoredState(number: 1, generation: 1, offset: 0, expiresAtMs: now + lifetime)
    let files = PartLayout.fileCount(parts: request.parts.count)
    let isSizeKnown = request.parts.last?.size != nil
    let size = isSizeKnown ? request.parts.reduce(0) { $0 + ($1.size ?? 0) } : 0
    let requestSize = (try? request.encodedByteCount) ?? 0
    // Beyond the client's limits nothing is created: it could not be finished.
    try finishedQuota.take(files: files, bytes: size, of: principal, now: now, counts: false)
    try quotas.addUpload(of: principal, requestSize: requestSize, files: files)
    let upload = UnfinishedUpload(
      id: id, request, of: principal, in: unfinished, quotas, state, uncut: nil)
    do throws(FileError) {
      let folder = try unfinished.makeFolder(id)
      do throws(FileError) {
        _ = try folder.makeFolder(PartFiles.filesName)
        _ = try folder.makeFolder(PartFiles.fieldsName)
        try StateFile.make(state, in: folder)
        let stored = StoredUpload(request: request, principal: principal)
        try folder.write((try? stored.encodedBytes()) ?? [], to: Self.requestName)
        try folder.sync()
        try unfinished.sync()
      } catch {
        // If this fails, the next start removes the rest.
        _ = try? unfinished.removeFolder(id)
        throw error
      }
    } catch {
      quotas.removeUpload(of: principal, requestSize: requestSize, files: files, bytes: 0)
      throw UploadFailure(error)
    }
    table.withLock(of: self) { table in
      table.uploads[id] = upload
      if !request.key.isEmpty {
        table.keys[Key(principal: principal, key: request.key)] = id
      }
      table.counters.created += 1
    }
    return response(id, upload.factsNow, now: now)
  }
}
