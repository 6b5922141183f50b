// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLinkCertificates
import LongLinkHTTP
import NIOCore
import NIOPosix
import NIOSSL

/// A server of TLS on a free port of this machine, which answers the first bytes of each connection
/// with an empty 200.
enum SecureServer {
  private static let day: Int64 = 86_400

  /// The seconds since 1970.
  private static let now = Int64(Date().timeIntervalSince1970)

  /// A validity that began a day ago and lasts two.
  static var validity: Range<Int64> { (now - day)..<(now + day) }
  static var past: Range<Int64> { (now - 2 * day)..<(now - day) }
  static var future: Range<Int64> { (now + day)..<(now + 2 * day) }

  /// An authority that tests trust.
  static let authority = CertificateKit.make(
    CertificateRequest(
      name: "Test authority", isAuthority: true, validity: validity, keyKind: .p256))

  static var roots: HTTPTLS {
    HTTPTLS(additionalRoots: [.pem(String(decoding: authority.certificate, as: UTF8.self))])
  }

  static func certificate(
    _ names: [String] = ["IP:127.0.0.1", "DNS:localhost"],
    purpose: CertificateRequest.Purpose = .server, valid: Range<Int64>? = nil,
    issuer: CertificatePair? = authority
  ) -> CertificatePair {
    CertificateKit.make(
      CertificateRequest(
        name: "Test", names: names, purpose: purpose, serial: 7, validity: valid ?? validity,
        keyKind: .p256), issuer: issuer)
  }

  /// Runs a body with the port of a server. With `clients`, it requires certificates of theirs.
  /// `makeHandler` makes what answers each connection instead, over one of the `protocols`.
  static func run<Value>(
    _ pair: CertificatePair = certificate(), clients: CertificatePair? = nil,
    most: TLSVersion? = nil, protocols: [String] = [],
    makeHandler: @escaping @Sendable () -> any ChannelHandler = { Answering() },
    _ body: (Int) async throws -> Value
  ) async throws -> Value {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(pair.certificate).map {
        .certificate($0)
      },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: pair.key, format: .pem)))
    configuration.maximumTLSVersion = most
    configuration.applicationProtocols = protocols
    if let clients {
      configuration.certificateVerification = .noHostnameVerification
      configuration.trustRoots = .certificates(
        try NIOSSLCertificate.fromPEMBytes(clients.certificate))
    }
    let context = try NIOSSLContext(configuration: configuration)
    let listener = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(NIOSSLServerHandler(context: context))
          try pipeline.addHandler(makeHandler())
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      let value = try await body(listener.localAddress?.port ?? 0)
      try await listener.close()
      return value
    } catch {
      try? await listener.close()
      throw error
    }
  }
}

private final class Answering: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
  }

  // The client's complaint is its own business.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
#endif
