package import LongLinkCore
internal import LongLinkProtobufC

/// Encodes metadata, and remembers the last: most requests of a connection say the same.
package struct MetadataCoder {
  private var encodedRemaining: UInt32?
  private var encoded = MetadataBlock.short(0, count: 0)

  package init() {}

  /// The block that tells the time that remains, in milliseconds.
  package mutating func encode(remaining: UInt32) throws(BodyError) -> MetadataBlock {
    if encodedRemaining != remaining {
      encoded = try Metadata(remaining: remaining).encodedBlock()
      encodedRemaining = remaining
    }
    return encoded
  }
}

extension Metadata {
  /// The block that says all of it.
  func encodedBlock() throws(BodyError) -> MetadataBlock {
    MetadataBlock(try encodedBytes())
  }
}

extension Session {
  /// Encodes a control message and lets it leave.
  package mutating func enqueue(_ message: ControlMessage) {
    do throws(BodyError) {
      switch message {
      case .hello(let hello): enqueue(.hello, body: try hello.encodedBytes())
      case .welcome(let welcome): enqueue(.welcome, body: try welcome.encodedBytes())
      case .goaway(let goaway): enqueue(.goaway, body: try goaway.encodedBytes())
      }
    } catch {
      // Names and reasons are checked where they are configured: no NUL gets here.
      preconditionFailure("a control message has no encoding: \(error)")
    }
  }
}
