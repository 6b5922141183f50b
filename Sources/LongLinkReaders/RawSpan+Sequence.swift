// SPDX-License-Identifier: Apache-2.0

/// Lends the bytes of a sequence, which are copied only if they are not in one piece.
func withRawSpan<Result>(
  of bytes: some Sequence<UInt8>, _ body: (RawSpan) -> Result
) -> Result {
  let result = bytes.withContiguousStorageIfAvailable { bytes in
    // The buffer is valid during this call.
    unsafe body(UnsafeRawBufferPointer(bytes).bytes)
  }
  if let result { return result }
  let copy = Array(bytes)
  return unsafe body(copy.span.bytes)
}
