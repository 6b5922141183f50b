// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// Whose an upload is, and whose limits it counts against.
@Suite struct OwnerTests {
  private static let ann = UploadOwner.name(ofPrincipal: "ann")
  private static let bob = UploadOwner.name(ofPrincipal: "bob")
  private static let file = [StoreStage.file("a", nil)]

  /// Everything that others may try with an upload finds none.
  private func expectUnknown(_ id: String, to principal: String, _ stage: StoreStage) {
    expect(.unknown) { try stage.status(id, of: principal) }
    expect(.unknown) { try stage.status(id, takesOver: true, of: principal) }
    expect(.unknown) { try stage.append([1], to: id, at: 0, of: principal) }
    expect(.unknown) { try stage.finish(id, [], of: principal) }
    expect(.unknown) { try stage.store.abort(AbortRequest(id: id), of: principal) }
  }

  @Test func `an upload of a principal is for nobody else, whatever it has become`() throws {
    var stage = try StoreStage()
    let others = [Self.bob, UploadOwner.name(of: .ipv4(192, 0, 2, 1, port: 0)), "ann", ""]
    let id = try stage.create(Self.file, of: Self.ann).id
    for other in others { expectUnknown(id, to: other, stage) }
    try stage.append([1, 2], to: id, at: 0, of: Self.ann)
    try stage.restart()
    for other in others { expectUnknown(id, to: other, stage) }
    #expect(try stage.status(id, of: Self.ann).generation == 1)
    try stage.finish(id, [1, 2], of: Self.ann)
    for other in others { expectUnknown(id, to: other, stage) }
    try stage.restart()
    for other in others { expectUnknown(id, to: other, stage) }
    #expect(try stage.status(id, of: Self.ann).state == .finished)
    #expect(stage.store.counters.appendsRunning == 0)
  }

  @Test func `an upload without a principal is for whoever knows its ID`() throws {
    let stage = try StoreStage()
    let home = UploadOwner.name(of: .ipv4(192, 0, 2, 1, port: 0))
    let away = UploadOwner.name(of: .ipv4(198, 51, 100, 1, port: 0))
    let id = try stage.create(Self.file, of: home).id
    try stage.append([1], to: id, at: 0, of: away)
    try stage.append([2], to: id, at: 1, of: Self.ann)
    try stage.finish(id, [1, 2], of: away)
  }

  @Test func `a name cannot be that of another owner`() {
    let long = String(repeating: "x", count: UploadOwner.mostNameBytes)
    let names = [
      UploadOwner.name(ofPrincipal: "ipv4-c0000201"), UploadOwner.name(ofPrincipal: "local"),
      UploadOwner.name(of: .ipv4(192, 0, 2, 1, port: 0)), UploadOwner.name(of: nil),
      UploadOwner.name(ofPrincipal: ""), UploadOwner.name(ofPrincipal: long),
      UploadOwner.name(ofPrincipal: long + "x"), UploadOwner.name(ofPrincipal: long + "y"),
      UploadOwner.name(ofPrincipal: "%c3%a9"), UploadOwner.name(ofPrincipal: "\u{E9}"),
      UploadOwner.name(ofPrincipal: ":sha256-"), UploadOwner.name(ofPrincipal: "principal-"),
    ]
    #expect(Set(names).count == names.count)
    #expect(names.allSatisfy { $0.utf8.count <= UploadOwner.mostNameBytes + 100 })
    // Equal as text, and two principals.
    let composed = UploadOwner.name(ofPrincipal: "\u{E9}")
    let decomposed = UploadOwner.name(ofPrincipal: "e\u{301}")
    #expect("\u{E9}" == "e\u{301}" && composed != decomposed)
    #expect(!UploadOwner.mayUse(uploadsOf: composed, decomposed))
  }

  @Test func `the key of a create is its principal's`() throws {
    let stage = try StoreStage()
    let first = try stage.create(Self.file, key: "k", of: Self.ann).id
    #expect(try stage.create(Self.file, key: "k", of: Self.bob).id != first)
    #expect(try stage.create(Self.file, key: "k", of: Self.ann).id == first)
  }

  // MARK: Over the network

  /// A server that takes each credential as a name, and nobody without one as a principal.
  private func run(
    _ change: (inout UploadLimits) -> Void = { _ in },
    _ body: @escaping @Sendable (RouteStage) async throws -> Void
  ) async throws {
    try await RouteStage.run(
      change,
      authenticate: { request in
        guard let name = request.credential, !name.isEmpty else { return .anonymous }
        return Authentication(Principal(String(decoding: name, as: UTF8.self)))
      }, body)
  }

  private static func expectUnknown(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
  ) async {
    let error = await #expect(throws: LongLinkError.self, sourceLocation: sourceLocation) {
      try await body()
    }
    #expect(error?.response == .unknownUpload, sourceLocation: sourceLocation)
  }

  @Test func `another principal is answered as if there was no upload`() async throws {
    try await run { stage in
      let (ann, bob) = (try stage.client(as: "ann"), try stage.client(as: "bob"))
      let id = try await stage.create(of: ann)
      try await stage.append([1], to: id, at: 0, of: ann)
      for other in [bob, try stage.client()] {
        await Self.expectUnknown {
          _ = try await other.request(UploadMethods.status, StatusRequest(id: id, takesOver: true))
        }
        await Self.expectUnknown { try await stage.append([2], to: id, at: 1, of: other) }
        await Self.expectUnknown { _ = try await stage.finish(id, [1], of: other) }
        await Self.expectUnknown {
          _ = try await other.request(UploadMethods.abort, AbortRequest(id: id))
        }
      }
      // The same principal on another connection goes on.
      let again = try stage.client(as: "ann")
      try await stage.append([2], to: id, at: 1, of: again)
      _ = try await stage.finish(id, [1, 2], of: again)
      await Self.expectUnknown {
        _ = try await bob.request(UploadMethods.status, StatusRequest(id: id))
      }
      #expect(stage.receiver.counters.takeovers == 0 && stage.receiver.counters.finished == 1)
    }
  }

  @Test func `limits count by principal, not by the address that they share`() async throws {
    try await run {
      $0.maxClientUploads = 2
      $0.maxClientBytes = 10 + 2 * StoreStage.fileCost
    } _: { stage in
      let (ann, bob) = (try stage.client(as: "ann"), try stage.client(as: "bob"))
      let ids = [try await stage.create(of: ann), try await stage.create(of: ann)]
      // Another connection of the same principal has no places of its own.
      for client in [ann, try stage.client(as: "ann")] {
        let error = await #expect(throws: LongLinkError.self) {
          _ = try await client.request(
            UploadMethods.create, CreateRequest(parts: Self.file),
            options: RequestOptions(retry: .never))
        }
        #expect(error?.response == .overloaded)
      }
      let other = try await stage.create(of: bob)
      try await stage.append([UInt8](repeating: 1, count: 10), to: ids[0], at: 0, of: ann)
      let full = await #expect(throws: LongLinkError.self) {
        try await stage.append([1], to: ids[1], at: 0, of: ann)
      }
      #expect(full?.response == .noSpace)
      try await stage.append([1], to: other, at: 0, of: bob)
      #expect(stage.receiver.counters.unfinishedBytes == 11)
    }
  }
}
