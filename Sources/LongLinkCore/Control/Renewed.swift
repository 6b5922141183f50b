// SPDX-License-Identifier: Apache-2.0

/// The server's answer to a client's next credential. A field that is 0 or empty means its default.
package struct Renewed: Equatable, Sendable {
  /// How long the credential is accepted, in milliseconds; 0 without an end.
  package var credentialExpires: UInt32
  package var reason: String

  package init(credentialExpires: UInt32 = 0, reason: String = "") {
    self.credentialExpires = credentialExpires
    self.reason = reason
  }
}

extension Renewed: ControlBody {
  package static let fields = [
    ControlField(1, "credential_expires"), ControlField(2, "reason", .text),
  ]

  package func write(to writer: inout ProtobufWriter) throws(BodyError) {
    writer.uint32(1, credentialExpires)
    try writer.string(2, reason)
  }

  package static func read(from reader: inout ProtobufReader) throws(BodyError) -> Renewed {
    var value = Renewed()
    while let field = try reader.next() {
      switch field {
      case 1: value.credentialExpires = try reader.uint32()
      case 2: value.reason = try reader.string()
      default: try reader.skip()
      }
    }
    return value
  }
}
