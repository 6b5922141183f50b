// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// Lends an arena whose first kilobyte is on the stack.
@inlinable
func withArena<Result>(
  measuresOnly: Bool = false,
  _ body: (inout ProtobufCArena) throws(BodyError) -> Result
) throws(BodyError) -> Result {
  try unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) {
    (first) throws(BodyError) -> Result in
    // The arena ends before its first memory does.
    var arena = unsafe ProtobufCArena(first: first, measuresOnly: measuresOnly)
    return try body(&arena)
  }
}
