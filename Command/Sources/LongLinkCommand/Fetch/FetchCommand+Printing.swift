// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLink
import LongLinkCommandSupport
import LongLinkCore
import LongLinkHTTP
import LongLinkReaders
import LongLinkUploads

/// Why a fetch has failed.
struct FetchFailure: Error {
  let text: String
  let status: Int32

  init(_ text: String, _ status: Int32) {
    self.text = text
    self.status = status
  }

  /// A document has an error, with this text of the server.
  init(saying text: String) {
    self.init("\(PeerText(text))", ExitStatus.rejected)
  }

  init(_ error: any Error) {
    switch error {
    case let error as FetchFailure: self = error
    case let error as LongLinkError: self.init("\(error)", FetchFailure.status(of: error))
    case HTTPDownloadError.exchange(let error):
      self.init("\(error)", FetchFailure.status(of: error))
    case let error as ReaderError: self.init("\(error)", FetchFailure.status(of: error))
    default: self.init("\(error)", ExitStatus.failure)
    }
  }

  private static func status(of error: LongLinkError) -> Int32 {
    switch error.code {
    case .rejected: ExitStatus.rejected
    case .encodingFailed where error.delivery == .notSent: ExitStatus.usage
    case .connectionLost where error.delivery == .notSent: ExitStatus.notConnected
    default: ExitStatus.of(error)
    }
  }

  private static func status(of error: ReaderError) -> Int32 {
    switch error.code {
    case .errorElement: ExitStatus.rejected
    case .truncated: ExitStatus.lost
    default: ExitStatus.damaged
    }
  }
}

extension FetchCommand {
  /// Gets the URL and prints. Returns why that has failed, if it has.
  func fetch(_ request: HTTPRequest, from service: HTTPService) async -> FetchFailure? {
    do {
      if let output {
        try await service.download(request, to: output)
        return nil
      }
      var request = request
      // What is printed as it comes is not held back until a block of compressed bytes is full.
      request.acceptsCompression = false
      let response = try await service.open(request)
      if let xml {
        try await printXML(xml, response.chunks)
      } else if let json {
        try await printJSON(json, response.chunks)
      } else {
        var printer = BodyPrinter()
        for try await chunk in response.chunks { try printer.write(chunk) }
        try printer.finish()
      }
      return nil
    } catch {
      return FetchFailure(error)
    }
  }

  private func printXML(_ name: String, _ chunks: BytePieces<LongLinkError>) async throws {
    let elements = DocumentReader(chunks).elements(named: name, error: error)
    do {
      for try await element in elements { try printLine(element.textBytes) }
    } catch let failure as ReaderError where failure.code == .errorElement {
      guard let element = failure.element else { throw failure }
      throw FetchFailure(saying: element.text)
    }
  }

  private func printJSON(_ shape: JSONReader.Shape, _ chunks: BytePieces<LongLinkError>)
    async throws
  {
    let beginning = Beginning()
    let parts = FetchParts(chunks: chunks, beginning: beginning)
    do {
      for try await element in DocumentReader(parts).values(shape) {
        if let text = errorText(in: element) { throw FetchFailure(saying: text) }
        try printLine(element)
      }
    } catch let failure as ReaderError where failure.code == .notFound {
      // The document itself may be the error.
      guard let text = errorText(in: beginning.bytes) else { throw failure }
      throw FetchFailure(saying: text)
    }
  }

  /// The text of an object that is an error; nil for any other value.
  private func errorText(in value: [UInt8]) -> String? {
    guard let error,
      let object = try? JSONSerialization.jsonObject(with: Data(value)) as? [String: Any],
      let member = object[error]
    else { return nil }
    if let text = member as? String { return text }
    let data = try? JSONSerialization.data(
      withJSONObject: member, options: [.fragmentsAllowed, .sortedKeys])
    return data.map { String(decoding: $0, as: UTF8.self) } ?? "\(member)"
  }

  /// Prints an element on one line, at once.
  private func printLine(_ bytes: [UInt8]) throws {
    let line = TerminalText.line(bytes, isJSON: json != nil)
    try Output.write(line + [UInt8(ascii: "\n")])
  }
}

/// The beginning of a document: as much as an error has.
private final class Beginning {
  private(set) var bytes: [UInt8] = []

  func add(_ chunk: [UInt8]) {
    bytes += chunk.prefix(65_536 - bytes.count)
  }
}

/// The chunks of a response, whose beginning is kept.
private struct FetchParts: AsyncSequence {
  typealias Element = [UInt8]

  let chunks: BytePieces<LongLinkError>
  let beginning: Beginning

  func makeAsyncIterator() -> Iterator {
    Iterator(chunks: chunks.makeAsyncIterator(), beginning: beginning)
  }

  struct Iterator: AsyncIteratorProtocol {
    var chunks: BytePieces<LongLinkError>.Iterator
    let beginning: Beginning

    mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
      let chunk = try await chunks.next(isolation: actor)
      if let chunk { beginning.add(chunk) }
      return chunk
    }

    mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }
  }
}
#endif
