// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLinkTesting

/// Opens connections that say hello and nothing else, and holds them until its input ends.
struct Greet: ParsableCommand {
  @Option(help: "The server's port on the loopback address.")
  var port: UInt16
  @Option(help: "Connections.")
  var connections = 10_000
  @Flag(help: "Claim an identity on each connection.")
  var identities = false
  @Flag(help: "Show a credential on each connection: the name of a principal.")
  var principals = false

  func run() throws {
    for number in 0..<connections {
      let hello = WireFrame.hello(
        credential: principals ? Principals.credential(number) : [],
        clientID: identities ? Greet.identity(number) : [])
      try greet(hello.bytes)
    }
    print("greeted")
    fflush(nil)
    while readLine() != nil {}
  }

  /// 16 bytes that no other client has.
  private static func identity(_ number: Int) -> [UInt8] {
    Array("client \(100_000_000 + number)".utf8)
  }

  /// Opens a connection, which the end of the process closes, and waits for the welcome.
  private func greet(_ hello: [UInt8]) throws {
    let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    let size = socklen_t(MemoryLayout.size(ofValue: address))
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(connection, $0, size) }
    }
    var answer = [UInt8](repeating: 0, count: 256)
    guard connected == 0, send(connection, hello, hello.count, 0) == hello.count,
      recv(connection, &answer, answer.count, 0) > 0
    else { Meter.fail("a connection was not welcomed") }
  }
}
