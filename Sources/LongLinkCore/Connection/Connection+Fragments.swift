// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Processes a frame that may be a fragment, or arrives while messages are incomplete.
  mutating func acceptFragment(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    if assemblies.contains(head.serial) { return try continueAssembly(head, slice) }
    guard head.flags.contains(.more) else { return try acceptMessage(head, slice) }
    if head.kind == .request {
      guard !inbound.contains(head.serial) else { throw Violation(.serialInUse, head) }
      if let refusal = countRequest(of: slice.count) {
        try discard(head)
        refuse(head.serial, tag: head.tag, refusal)
        return nil
      }
      inbound.begin(head.serial)
    }
    if head.kind == .response, !streams.isEmpty { try streamAnswered(head.serial, tag: head.tag) }
    begin(head)
    try grow(head, slice)
    if head.kind == .response { report(.request(.collect(serial: head.serial))) }
    return nil
  }

  private mutating func continueAssembly(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    try assemblies.validate(head)
    try grow(head, slice)
    guard !head.flags.contains(.more), let whole = removeAssembly(head.serial) else { return nil }
    guard !whole.isDiscarding else { return nil }
    let body = inbox.assemble(whole.body.joined())
    var joined = head
    joined.flags = whole.flags.subtracting(.more)
    joined.length = body.count
    let arrival = try inbox.arrival(joined, body)
    guard head.kind == .request else { return try acceptAnswer(arrival) }
    try inbox.readMetadata(of: arrival)
    if let refusal = try refusal(of: arrival) {
      inbound.conclude(head.serial, with: .refused)
      refuse(head.serial, tag: head.tag, refusal)
      return nil
    }
    inbound.complete(head.serial, holding: arrival.byteCount)
    return arrival
  }

  private mutating func begin(_ head: FrameHead, isDiscarding: Bool = false) {
    assemblies.begin(head, to: settings.role, isDiscarding: isDiscarding, at: now)
    // A response is bounded by its request's deadline instead.
    if head.kind != .response, timers[.message] == .distantFuture {
      timers[.message] = now + settings.messageTimeout
    }
  }

  /// Adds a fragment's bytes, or abandons the message if it exceeds a limit.
  private mutating func grow(_ head: FrameHead, _ slice: BodySlice) throws(Violation) {
    assemblies.touch(head.serial, at: now)
    guard let (count, isAwaited) = assemblies.held(by: head.serial) else { return }
    let size = count + slice.count
    let isOverLimit = size > settings.maxBody
    let isTooMuch = !isAwaited && requestBytes + slice.count > settings.maxRequestBytes
    guard isOverLimit || isTooMuch else {
      return unsafe inbox.withFrame(slice) { bytes in
        unsafe assemblies.append(bytes, to: head.serial, limit: settings.maxBody - size)
      }
    }
    guard head.kind == .request else {
      throw Violation(.lengthOverLimit, head, value: UInt64(size))
    }
    inbound.conclude(head.serial, with: .refused)
    try discard(head)
    refuse(head.serial, tag: head.tag, isOverLimit ? .tooLarge : .tooManyBytes)
  }

  /// Notes that the remaining fragments of a refused request must be read and discarded.
  ///
  /// A well-behaved peer stops and cancels a refused request. A peer that has too many of them
  /// tries to use up memory, which is a violation.
  private mutating func discard(_ head: FrameHead) throws(Violation) {
    _ = removeAssembly(head.serial)
    guard assemblies.discarding < max(16, settings.maxInFlight) else {
      throw Violation(.lengthOverLimit, head)
    }
    begin(head, isDiscarding: true)
  }

  /// Drops an incomplete message and returns it; nil if there is none with this serial.
  mutating func removeAssembly(_ serial: UInt32) -> Assembly? {
    guard let assembly = assemblies.remove(serial) else { return nil }
    if assemblies.isEmpty { timers.clear(.message) }
    return assembly
  }

  /// Stops collecting a response that no caller waits for any more.
  ///
  /// Nothing about it is remembered, because its last fragment may never arrive. If it does, it is
  /// dropped as a response that no caller waits for.
  package mutating func abandonResponse(_ serial: UInt32) {
    _ = removeAssembly(serial)
  }

  /// Abandons the messages whose next fragments are overdue.
  ///
  /// A request is refused, and its remaining fragments are dropped. A push cannot be refused and
  /// would block all later pushes, so it ends the connection.
  mutating func messageElapsed() {
    // Fragments may be missing because this side does not read.
    guard !holdsReading else {
      timers[.message] = now + settings.messageTimeout
      return
    }
    let (overdue, next) = assemblies.overdue(
      at: now, after: settings.messageTimeout, since: readHold.resumed, to: settings.role)
    for head in overdue where assemblies.contains(head.serial) {
      counters.stalledMessages += 1
      inbound.conclude(head.serial, with: .refused)
      guard head.kind == .request, (try? discard(head)) != nil else {
        violate(Violation(.frameTimeout, head))
        return
      }
      refuse(head.serial, tag: head.tag, .stalled)
    }
    // Refusals that the peer does not read may have ended the connection.
    guard isLive else { return }
    // The scan covers all messages, so it must not be frequent.
    timers[.message] = next == .distantFuture ? next : max(next, now + settings.messageTimeout / 8)
  }
}
