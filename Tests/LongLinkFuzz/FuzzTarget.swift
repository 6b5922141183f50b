// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// What is fuzzed: each target takes whatever bytes it is given, and throws where a promise is
/// broken. None may trap, whatever the bytes are.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// The header and checksum of native frames.
  case native
  /// A layout and rules, and bytes for them.
  case dialect
  /// The same with delimiters, and damage that has to be survived.
  case delimiter
  /// The JSON form of layouts and dialects.
  case layout
  /// Control messages, metadata, generated messages and those of uploads.
  case bodies
  /// A whole connection, whose peer and driver do as the bytes say.
  case client
  case server
  /// The same on a short link.
  case shortClient
  case shortServer
  /// The same in a dialect.
  case dialectClient
  case dialectServer
  /// Documents that are read in parts.
  case xml
  case json
  /// What a proxy says of a connection.
  case proxy
  /// TLS, whose client or server is given damaged bytes.
  case tlsClient
  case tlsServer
  /// What a stranger's handshake makes TLS decode.
  case handshake
  /// Recordings, which are read and replayed.
  case recording

  package func run(_ bytes: [UInt8]) throws {
    switch self {
    case .native: try NativeFuzz.run(bytes)
    case .dialect: try DialectFuzz.run(bytes, isDelimited: false)
    case .delimiter: try DialectFuzz.run(bytes, isDelimited: true)
    case .layout: try LayoutFuzz.run(bytes)
    case .bodies: try BodyFuzz.run(bytes)
    case .client: try ConnectionFuzz.run(.client, bytes)
    case .server: try ConnectionFuzz.run(.server, bytes)
    case .shortClient: try ConnectionFuzz.run(.client, isShort: true, bytes)
    case .shortServer: try ConnectionFuzz.run(.server, isShort: true, bytes)
    case .dialectClient: try ConnectionFuzz.run(.client, inDialect: true, bytes)
    case .dialectServer: try ConnectionFuzz.run(.server, inDialect: true, bytes)
    case .xml: try ReaderFuzz.runXML(bytes)
    case .json: try ReaderFuzz.runJSON(bytes)
    case .proxy: try ProxyFuzz.run(bytes)
    case .tlsClient: try TLSFuzz.run(.client, bytes)
    case .tlsServer: try TLSFuzz.run(.server, bytes)
    case .handshake: try HandshakeFuzz.run(bytes)
    case .recording: try RecordingFuzz.run(bytes)
    }
  }
}

/// A promise that did not hold.
package struct FuzzFailure: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Throws unless a promise holds.
func expect(_ holds: Bool, _ promise: @autoclosure () -> String) throws(FuzzFailure) {
  guard holds else { throw FuzzFailure(promise()) }
}
