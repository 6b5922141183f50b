// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

// How a request is handed to a link.

extension Requests {
  /// The facts about a request that a link has taken.
  struct Sent {
    let position: OutputPosition
    let isTimeTold: Bool
  }

  /// The reason why a request cannot be sent at all.
  struct Unsendable: Error {
    let code: LongLinkError.Code
    let detail: String

    init(_ code: LongLinkError.Code, _ detail: String = "") {
      self.code = code
      self.detail = detail
    }

    /// The request's body or its metadata has no encoding.
    init(_ error: BodyError) {
      self.init(.encodingFailed, "\(error)")
    }

    init(tooLarge count: Int, for link: Link) {
      self.init(
        .tooLarge, "\(count) bytes, of which the peer accepts \(link.connection.agreement.maxBody)")
    }
  }

  /// Hands a request to a link.
  func send(
    _ id: RequestID, _ request: borrowing PendingRequest, on link: Link, at now: LinkInstant
  ) throws(Unsendable) -> Sent {
    if request.deadline <= now { throw Unsendable(.deadlineExceeded, request.lateness) }
    let terms = request.channel?.terms(on: link)
    if let terms { try check(terms, on: link) }
    if !link.connection.framing.isNative { try check(request, id, inDialectOf: link) }
    var metadata: MetadataBlock?
    let size: Int
    do throws(BodyError) {
      size = try request.body.encodedByteCount
      if !request.runsOnce {
        metadata = try self.metadata(for: request, count: size, terms, nil, on: link, at: now)
      }
    } catch {
      throw Unsendable(error)
    }
    if request.runsOnce {
      metadata = try onceMetadata(of: id, request, count: size, terms, on: link, at: now)
    }
    let length = metadata.map { 2 + $0.count + size } ?? size
    if length > link.connection.agreement.maxBody {
      // The peer can do without the remaining time, but not without the body.
      let least = request.extras?.metadata == nil && !request.runsOnce ? size : length
      guard least <= link.connection.agreement.maxBody else {
        throw Unsendable(tooLarge: least, for: link)
      }
      metadata = nil
    }
    do throws(BodyError) {
      let position = try link.request(
        id.serial, type: request.type, metadata: metadata,
        priority: request.priority, count: size, stream: terms, at: now
      ) { (span) throws(BodyError) in
        try request.body.encode(into: &span)
      }
      // A dialect may have so few serials that this one belonged to an abandoned request.
      if owed.count > 0 { owed.remove(id.serial) }
      request.record?.handedOver(id.serial, size, on: link)
      // The peer of a stream is told of a cancel in any case: it may wait for credit.
      return Sent(position: position, isTimeTold: metadata != nil && terms == nil)
    } catch {
      throw Unsendable(error)
    }
  }

  /// Throws if a link cannot carry a stream.
  private func check(_ terms: StreamTerms, on link: Link) throws(Unsendable) {
    guard !link.connection.settings.isShort || !terms.isTwoWay else {
      throw Unsendable(.unsupported, "a short link carries items in one direction only")
    }
    guard link.connection.agreement.features.contains(.streams) else {
      throw Unsendable(
        .unsupported,
        link.connection.framing.isNative ? "the peer has no streams" : "the dialect has no streams")
    }
    guard terms.credit.map({ link.connection.streams.hasRoom(for: $0) }) ?? true else {
      throw Unsendable(
        .overloaded, "the windows of all streams would exceed the connection's limit")
    }
  }

  /// Throws if the dialect cannot express a request.
  private func check(
    _ request: borrowing PendingRequest, _ id: RequestID, inDialectOf link: Link
  ) throws(Unsendable) {
    guard let dialect = link.connection.framing.facts else { return }
    guard !request.runsOnce else {
      throw Unsendable(.unsupported, "the dialect has no requests that run once")
    }
    if let metadata = request.extras?.metadata, metadata.isMoreThanPriority {
      throw Unsendable(
        .unsupported, "\(dialect.name) has no place for an idempotency key, nor for metadata")
    }
    if let objection = link.connection.framing.objection(toRequest: request.type, serial: id.serial)
    {
      throw Unsendable(.unsupported, objection)
    }
    do throws(BodyError) {
      try request.body.validate(for: link)
    } catch {
      throw Unsendable(error)
    }
  }

  @inline(__always)
  private func metadata(
    for request: borrowing PendingRequest, count: Int, _ terms: StreamTerms?,
    _ once: OnceStatement?, on link: Link, at now: LinkInstant
  ) throws(BodyError) -> MetadataBlock? {
    guard link.connection.agreement.features.contains(.metadata) else { return nil }
    // Rounded up, so that the peer does not give up first.
    let remaining = request.limit.map { UInt32(clamping: ($0 - now + 999_999) / 1_000_000) }
    if let extras = request.extras {
      if let observed = extras.observed,
        let block = try? encode(observed, remaining, terms, once),
        2 + block.count + count <= link.connection.agreement.maxBody
      {
        return block
      }
      if let metadata = extras.metadata { return try encode(metadata, remaining, terms, once) }
    }
    if let once { return metadataCache.encode(once, remaining: remaining) }
    return try remaining.map { (time) throws(BodyError) in try metadataCache.encode(remaining: time)
    }
  }

  /// Returns the metadata of a request that runs once. Apart from the others, which need no memory
  /// for what it states.
  @inline(never)
  private func onceMetadata(
    of id: RequestID, _ request: borrowing PendingRequest, count: Int, _ terms: StreamTerms?,
    on link: Link, at now: LinkInstant
  ) throws(Unsendable) -> MetadataBlock? {
    let once = try statement(of: id, request.ticket, on: link, at: now)
    do throws(BodyError) {
      return try metadata(for: request, count: count, terms, once, on: link, at: now)
    } catch {
      throw Unsendable(error)
    }
  }

  private func encode(
    _ metadata: Metadata, _ remaining: UInt32?, _ terms: StreamTerms?, _ once: OnceStatement?
  ) throws(BodyError) -> MetadataBlock {
    var metadata = metadata
    metadata.remaining = remaining
    metadata.credit = terms?.credit.map { UInt32(clamping: $0) }
    metadata.items = terms?.sendsItems ?? false
    if let once { metadata.state(once) }
    let block = try metadata.encodedBlock()
    guard block.count <= Wire.metadataLimit else {
      throw BodyError(.tooLarge, detail: "the metadata has \(block.count) bytes")
    }
    return block
  }
}
