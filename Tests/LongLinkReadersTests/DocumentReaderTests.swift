// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkJSON
import LongLinkReaders
import Synchronization
import Testing

/// Documents as asynchronous sequences.
@Suite struct DocumentReaderTests {
  struct Item: Codable, Equatable, Sendable {
    var id: Int
    var name = "x"
  }

  struct Cut: Error {}

  /// Parts of a document, and how many of them were taken.
  final class Parts: AsyncSequence, Sendable {
    typealias Element = ArraySlice<UInt8>

    let parts: [ArraySlice<UInt8>]
    let taken = Mutex(0)
    let fails: Bool

    init(_ text: String, _ cutting: Cutting = .bytes, fails: Bool = false) {
      parts = cutting.parts(of: Array(text.utf8))
      self.fails = fails
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: self) }

    struct Iterator: AsyncIteratorProtocol {
      let parts: Parts

      mutating func next() async throws -> ArraySlice<UInt8>? {
        let index = parts.taken.withLock { taken in
          taken += 1
          return taken - 1
        }
        if index < parts.parts.count { return parts.parts[index] }
        if parts.fails { throw Cut() }
        return nil
      }
    }
  }

  @Test(arguments: Cutting.several)
  func `elements are a sequence`(cutting: Cutting) async throws {
    let xml = DocumentReader(Parts("<a><node>1</node><b/><node>2</node></a>", cutting))
    var texts: [String] = []
    for try await node in xml.elements(named: "node", "other") { texts.append(node.text) }
    #expect(texts == ["1", "2"])
    let json = DocumentReader(Parts(#"{"items":[1,"2"]}"#, cutting))
    var values: [[UInt8]] = []
    for try await value in json.values(.path("items[*]")) { values.append(value) }
    #expect(values == [Array("1".utf8), Array(#""2""#.utf8)])
  }

  @Test func `nothing is taken that was not asked for`() async throws {
    let document = "<a><node>1</node><node>2</node></a>"
    let parts = Parts(document)
    var elements = DocumentReader(parts).elements(named: "node").makeAsyncIterator()
    #expect(parts.taken.withLock { $0 } == 0)
    #expect(try await elements.next()?.text == "1")
    #expect(parts.taken.withLock { $0 } == "<a><node>1</node>".utf8.count)
    #expect(try await elements.next()?.text == "2")
    #expect(parts.taken.withLock { $0 } == "<a><node>1</node><node>2</node>".utf8.count)
    #expect(try await elements.next() == nil)
    #expect(parts.taken.withLock { $0 } == document.utf8.count + 1)
    #expect(try await elements.next() == nil)
    #expect(parts.taken.withLock { $0 } == document.utf8.count + 1)
    // Of a part with many elements, the next is taken when all have been.
    let one = Parts("[1,2,3]", .whole)
    var values = DocumentReader(one).values(.array).makeAsyncIterator()
    for _ in 0..<3 {
      #expect(try await values.next() != nil)
      #expect(one.taken.withLock { $0 } == 1)
    }
  }

  @Test func `an error is thrown once, and then the sequence has ended`() async throws {
    let parts = Parts("<a><node>1</node><error>boom</error><node>2</node>", .whole)
    var elements = DocumentReader(parts).elements(named: "node", error: "error")
      .makeAsyncIterator()
    #expect(try await elements.next()?.text == "1")
    let error = await #expect(throws: ReaderError.self) { try await elements.next() }
    #expect(error?.element?.text == "boom")
    #expect(try await elements.next() == nil)
    // The rest was not asked for.
    #expect(parts.taken.withLock { $0 } == 1)
  }

  @Test func `an error of the parts is thrown behind the elements`() async throws {
    var elements = DocumentReader(Parts("<a><node>1</node>", fails: true)).elements(named: "node")
      .makeAsyncIterator()
    #expect(try await elements.next()?.text == "1")
    await #expect(throws: Cut.self) { try await elements.next() }
    var values = DocumentReader(Parts("[1,", fails: true)).values(.array).makeAsyncIterator()
    #expect(try await values.next() == [0x31])
    await #expect(throws: Cut.self) { try await values.next() }
    var open = DocumentReader(Parts("[1,")).values(.array).makeAsyncIterator()
    #expect(try await open.next() == [0x31])
    let error = await #expect(throws: ReaderError.self) { try await open.next() }
    #expect(error?.code == .truncated)
  }

  @Test func `a cancelled task is not a truncated document`() async throws {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
    continuation.yield(Array("<a><node>1</node>".utf8))
    let task = Task {
      var elements = DocumentReader(stream).elements(named: "node").makeAsyncIterator()
      #expect(try await elements.next()?.text == "1")
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      _ = try await elements.next()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    continuation.finish()
  }

  @Test(arguments: Cutting.several)
  func `nodes that hold JSON are decoded`(cutting: Cutting) async throws {
    let document = """
      <a><node>{"id": 1, "name": "&lt;é"}</node><node><![CDATA[{"id": 2, "name": "<x>"}]]></node>
      <node>{"id": <b>3</b>, "name": "x"}</node><error>boom</error>
      """
    let reader = DocumentReader(Parts(document, cutting))
    var items: [Item] = []
    let error = await #expect(throws: ReaderError.self) {
      for try await item in reader.elements(named: "node", as: Item.self, error: "error") {
        items.append(item)
      }
    }
    #expect(items == [Item(id: 1, name: "<é"), Item(id: 2, name: "<x>"), Item(id: 3)])
    #expect(error?.code == .errorElement && error?.element?.text == "boom")
  }

  @Test func `what does not fit its type is an error that says where`() async throws {
    let reader = DocumentReader(Parts(#"[{"id":1,"name":"a"},{"id":"2","name":"secret"},1]"#))
    var values = reader.values(.array, as: Item.self).makeAsyncIterator()
    #expect(try await values.next() == Item(id: 1, name: "a"))
    let error = await #expect(throws: ReaderError.self) { try await values.next() }
    #expect(error?.code == .undecodable)
    #expect(error?.detail == "the value.id is not Int")
    #expect(try await values.next() == nil)
  }

  @Test func `a file is read in pieces`() async throws {
    let name = "longlink-readers-\(UUID().uuidString).json"
    let url = FileManager.default.temporaryDirectory.appending(path: name)
    let items = (0..<5_000).map { Item(id: $0, name: "é\($0)") }
    try JSONEncoder().encode(items).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    let file = try FileHandle(forReadingFrom: url)
    defer { try? file.close() }
    let reader = DocumentReader(AsyncThrowingStream { try file.read(upToCount: 65_536) })
    var found: [Item] = []
    for try await item in reader.values(.array, as: Item.self) { found.append(item) }
    #expect(found == items)
  }
}
