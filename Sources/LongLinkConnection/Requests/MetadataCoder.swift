package import LongLinkCore
internal import LongLinkProtobufC

/// Encodes metadata, and remembers the last: most requests of a connection say the same.
package struct MetadataCoder {
  private var encodedRemaining: UInt32?
  private var encoded: [UInt8] = []

  package init() {}

  /// The bytes that tell the time that remains, in milliseconds.
  package mutating func encode(remaining: UInt32) throws(BodyError) -> [UInt8] {
    if encodedRemaining != remaining {
      encoded = try Metadata(remaining: remaining).encodedBytes()
      encodedRemaining = remaining
    }
    return encoded
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
