// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Testing

@testable import LongLinkHTTPServer

extension HTTPTests {
  /// Which connection of a full gateway makes room.
  @Suite struct GatewayPlacesTests {
    /// Admits an owner that has to fit.
    private static func enter(
      _ owner: String, _ places: inout GatewayPlaces<String>, evicts: String? = nil
    ) throws -> UInt64 {
      let admitted = places.admit(owner)
      let admission = try #require(admitted)
      #expect(admission.evicted == evicts)
      return admission.id
    }

    @Test func `the oldest makes room`() throws {
      var places = GatewayPlaces<String>(limit: 2)
      let first = try Self.enter("first", &places)
      _ = try Self.enter("second", &places)
      _ = try Self.enter("third", &places, evicts: "first")
      #expect(places.owners.count == 3)
      let removed = places.remove(first)
      let again = places.remove(first)
      #expect(removed && !again)
      _ = try Self.enter("fourth", &places, evicts: "second")
    }

    @Test func `those that were never accepted make room first`() throws {
      var places = GatewayPlaces<String>(limit: 3)
      let honest = try Self.enter("honest", &places)
      let wasAccepted = places.opened(honest, request: 1)
      #expect(wasAccepted && places.wasOpened(honest, request: 1))
      places.answered(honest, request: 1)
      var last = "1"
      for name in ["1", "2"] { _ = try Self.enter(name, &places) }
      for number in 3..<50 {
        _ = try Self.enter("\(number)", &places, evicts: last)
        last = "\(number - 1)"
      }
    }

    @Test func `of those that were accepted, the one that has waited longest makes room`() throws {
      var places = GatewayPlaces<String>(limit: 2)
      let one = try Self.enter("one", &places)
      let two = try Self.enter("two", &places)
      for (id, number) in [(one, 1), (two, 1), (one, 2)] {
        let isOpen = places.opened(id, request: number)
        #expect(isOpen)
        places.answered(id, request: number)
      }
      _ = try Self.enter("three", &places, evicts: "two")
    }

    @Test func `one that runs a request makes no room, also if an earlier answer is late`() throws {
      var places = GatewayPlaces<String>(limit: 1)
      let only = try Self.enter("only", &places)
      let first = places.opened(only, request: 1)
      let second = places.opened(only, request: 2)
      #expect(first && second)
      places.answered(only, request: 1)
      let denied = places.admit("other")
      #expect(denied == nil)
      places.answered(only, request: 2)
      _ = try Self.enter("other", &places, evicts: "only")
    }

    @Test func `what makes room runs nothing any more, and the number that leaves is bounded`()
      throws
    {
      var places = GatewayPlaces<String>(limit: 100)
      var ids: [UInt64] = []
      for number in 0..<100 { ids.append(try Self.enter("\(number)", &places)) }
      let most = GatewayPlaces<String>.mostLeaving
      for number in 0..<most { _ = try Self.enter("new", &places, evicts: "\(number)") }
      let ofLeaving = places.opened(ids[0], request: 1)
      #expect(!ofLeaving && !places.wasOpened(ids[0], request: 1))
      let denied = places.admit("more")
      #expect(denied == nil && places.owners.count == 100 + most)
      let hasLeft = places.remove(ids[0])
      let ofGone = places.opened(ids[0], request: 1)
      #expect(hasLeft && !ofGone)
      _ = try Self.enter("more", &places, evicts: "\(most)")
    }
  }
}
#endif
