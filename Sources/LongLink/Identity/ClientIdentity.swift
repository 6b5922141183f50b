// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
public import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// The secret by which a server recognises a client on each of its connections.
///
/// A client sometimes has two connections: it opens the next one before it leaves the last, and
/// after a change of network the old one may be dead without a sign. With the same identity on
/// both, the server takes them for one client, which gets each push once and is not reported as
/// gone in between.
///
/// An identity is 16 bytes, and a secret, like a credential: a peer that knows it, and has the same
/// principal (or none, on a server without `authenticate`), receives the pushes for this client. So
/// it appears in no log and no description. It is sent on each connection to a server, over TLS if
/// the client uses TLS. Dialects have no place for it.
///
/// Two clients must not share an identity: each would end the other's connections.
public struct ClientIdentity: Sendable, CustomStringConvertible {
  /// The identity; nil for the default, from which each client draws its own.
  private let id: ClientID?

  /// Makes the default identity: each client that is made with it draws its own 16 random bytes.
  public init() {
    id = nil
  }

  /// Makes an identity from 16 bytes of your own, for example from a key chain. They must be
  /// random. Throws `invalidConfiguration` unless there are 16.
  public init(bytes: [UInt8]) throws(LongLinkError) {
    guard let id = ClientID(bytes) else {
      throw .configuration(
        "identity.client", "it has \(bytes.count) bytes instead of \(ClientID.size)")
    }
    self.id = id
  }

  /// Reads an identity from a file, or makes one and writes it there, so that the client stays the
  /// same one when its process starts again.
  ///
  /// Only the file's owner can read it (mode 0600), and it is never overwritten. Its folder has to
  /// exist. Two clients that run at the same time need two files. The call blocks for as long as
  /// the file system takes.
  ///
  /// Throws `invalidConfiguration` if the file cannot be read or made, if it belongs to another
  /// user or others may read or write it, or if it does not have 16 bytes.
  public static func file(_ path: String) throws(LongLinkError) -> ClientIdentity {
    var random = SystemRandomNumberGenerator()
    let new = ClientID(random.next(), random.next())
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try SmallFile(path).readOrCreate(new.bytes, limit: ClientID.size + 1)
    } catch  where error.isUnprotected {
      throw .configuration(
        "identity.client", "\(path): it belongs to another user, or others may read or write it")
    } catch {
      throw .configuration("identity.client", "\(error)")
    }
    guard let id = ClientID(bytes) else {
      throw .configuration("identity.client", "\(path): it has not \(ClientID.size) bytes")
    }
    return ClientIdentity(id)
  }

  private init(_ id: ClientID) { self.id = id }

  /// Returns the identity, or draws one if this is the default. Call it on the loop.
  func settled(on loop: EventLoop) -> ClientID {
    id ?? ClientID(loop.driver.nextRandom(), loop.driver.nextRandom())
  }

  /// Whether this is the default identity or one that you gave, as text. It never has the bytes.
  public var description: String { id == nil ? "a client's own identity" : "a given identity" }
}
