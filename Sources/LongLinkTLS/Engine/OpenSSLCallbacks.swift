// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS

// What OpenSSL's callbacks call, with bytes that are lent for the time of the call. The compiler
// compares the parameters with those in the header of CLongLinkTLS.

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
