// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS

// The functions that the C around OpenSSL calls. Their bytes are valid during the call only. The
// compiler compares the parameters with those in the header of CLongLinkTLS.

@c @implementation
func cll_record_length(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int {
  unsafe RecordBounds.length(
    of: Span(_unsafeElements: UnsafeBufferPointer(start: start, count: count)))
}

@c @implementation
func cll_is_plain(_ start: UnsafePointer<UInt8>?, _ count: Int, _ fromClient: Bool) -> Bool {
  unsafe RecordBounds.isPlain(
    Span(_unsafeElements: UnsafeBufferPointer(start: start, count: count)),
    fromClient: fromClient)
}

@c @implementation
func cll_announces_large_hello(
  _ progress: UnsafeMutablePointer<cll_hello_progress>?, _ start: UnsafePointer<UInt8>?,
  _ count: Int, _ isOld: Bool
) -> Bool {
  guard let progress = unsafe progress else { return false }
  var bounds = unsafe RecordBounds(progress.pointee)
  defer { unsafe progress.pointee = bounds.progress }
  return unsafe bounds.announcesLargeHello(
    Span(_unsafeElements: UnsafeBufferPointer(start: start, count: count)), isOld: isOld)
}

@c @implementation
func cll_judge_message(
  _ start: UnsafeMutablePointer<UInt8>?, _ count: Int, _ fromClient: Bool, _ isNew: Bool
) -> CInt {
  var message = unsafe MutableSpan(
    _unsafeElements: UnsafeMutableBufferPointer(start: start, count: count))
  let problem = HandshakeBounds.judge(&message, fromClient: fromClient, isNew: isNew)
  return problem?.rawValue ?? 0
}

@c @implementation
func cll_is_crowded(_ type: CUnsignedInt, _ start: UnsafePointer<UInt8>?, _ count: Int) -> Bool {
  unsafe HandshakeBounds.isCrowded(
    CInt(bitPattern: type),
    Span(_unsafeElements: UnsafeBufferPointer(start: start, count: count)))
}

@c @implementation
func cll_write_ticket_facts(
  _ start: UnsafeMutablePointer<UInt8>?, _ expiry: Int64, _ beginning: Int64
) {
  var bytes = unsafe MutableSpan(
    _unsafeElements: UnsafeMutableBufferPointer(start: start, count: Int(CLL_TICKET_FACTS)))
  TicketFacts(expiry: expiry, beginning: beginning).write(to: &bytes)
}

@c @implementation
func cll_read_ticket_facts(
  _ start: UnsafePointer<UInt8>?, _ count: Int, _ now: Int64, _ lifetime: Int64,
  _ expiry: UnsafeMutablePointer<Int64>?, _ beginning: UnsafeMutablePointer<Int64>?
) -> Bool {
  let bytes = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: start, count: count))
  guard let facts = TicketFacts(bytes), facts.isGood(at: now, lifetime: lifetime) else {
    return false
  }
  unsafe expiry?.pointee = facts.expiry
  unsafe beginning?.pointee = facts.beginning
  return true
}
