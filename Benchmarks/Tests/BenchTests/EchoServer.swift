// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A server of one connection that answers each request with its body, or with a lie.
///
/// It answers a hello, and serves on its own thread until the connection ends. It ends the
/// connection at a wrong checksum.
struct EchoServer {
  enum Lie: String {
    case wrongLastByte = "the last byte is wrong"
    case shortBody = "a byte is missing"
    /// Not for those that connect anew and ask again, as LongLink's client does.
    case wrongChecksum = "a checksum does not hold"
    /// Takes two requests at a time.
    case swapped = "two answers are swapped"
  }

  let port: UInt16

  init(_ lie: Lie? = nil) throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        guard bind(listener, pointer, length) == 0, listen(listener, 1) == 0 else {
          return Int32(-1)
        }
        return getsockname(listener, pointer, &length)
      }
    }
    guard result == 0 else { throw CocoaError(.featureUnsupported) }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      EchoServer.serve(connection, lie)
      close(connection)
      close(listener)
    }
  }

  private struct Frame {
    let kind: UInt8
    let serial: UInt32
    var body: [UInt8]
  }

  /// As RFC 1950 has it, byte by byte.
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var (a, b) = (UInt32(1), UInt32(0))
    for byte in bytes {
      a = (a + UInt32(byte)) % 65_521
      b = (b + a) % 65_521
    }
    return b << 16 | a
  }

  private static func serve(_ connection: Int32, _ lie: Lie?) {
    let (request, hello) = (UInt8(0x00), UInt8(0x0A))
    let (answered, welcome) = (UInt32(0x0100_0000 | 200), UInt32(0x0B00_0000))
    var first: Frame?
    while let frame = read(connection) {
      if frame.kind == hello { write(connection, type: welcome, serial: 3, body: []) }
      guard frame.kind == request else { continue }
      var body = frame.body
      switch lie {
      case nil: break
      case .wrongLastByte: body[body.count - 1] ^= 1
      case .shortBody: body.removeLast()
      case .wrongChecksum: break
      case .swapped:
        guard let former = first else {
          first = frame
          continue
        }
        first = nil
        write(connection, type: answered, serial: former.serial, body: frame.body)
        body = former.body
      }
      write(
        connection, type: answered, serial: frame.serial, body: body,
        isRight: lie != .wrongChecksum)
    }
  }

  private static func read(_ connection: Int32) -> Frame? {
    guard let header = read(connection, 16) else { return nil }
    func word(at index: Int) -> UInt32 {
      header[index..<index + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
    guard let body = read(connection, Int(word(at: 8))),
      checksum(header[..<12] + body) == word(at: 12)
    else { return nil }
    return Frame(kind: header[0] & 0x3F, serial: word(at: 4), body: body)
  }

  private static func read(_ connection: Int32, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return count == 0 || recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count
      ? bytes : nil
  }

  private static func write(
    _ connection: Int32, type: UInt32, serial: UInt32, body: [UInt8], isRight: Bool = true
  ) {
    func bytes(_ word: UInt32) -> [UInt8] {
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }
    let header = bytes(type) + bytes(serial) + bytes(UInt32(body.count))
    let sum = checksum(header + body)
    let frame = header + bytes(isRight ? sum : sum ^ 1) + body
    _ = send(connection, frame, frame.count, Int32(MSG_NOSIGNAL))
  }
}
