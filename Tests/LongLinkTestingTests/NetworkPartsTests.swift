// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Synchronization
import Testing

@testable import LongLinkTesting

/// The parts of the network's state, each alone.
@Suite struct NetworkPartsTests {
  @Test func `an address has one listener, and one for all hosts covers it`() throws {
    var book = AddressBook()
    let here = SocketAddress.ipv4(10, 0, 0, 1, port: 80)
    let first = try book.listen(on: 0, of: 3, at: here, backlog: 1)
    #expect(book.machine(at: here) == 3)
    #expect(throws: SimulatedErrno.self) {
      try book.listen(on: 0, of: 3, at: .ipv4(0, 0, 0, 0, port: 80), backlog: 1)
    }
    let free = try book.listen(on: 0, of: 3, at: .ipv4(0, 0, 0, 0, port: 0), backlog: 1)
    let port = try #require(free.address.port)
    #expect(book.listener(at: .ipv4(10, 0, 0, 9, port: port))?.number == free.number)
    #expect(book.listeners(of: 3) == [first.number, free.number])
    book.listeners[first.number]?.queue = [7]
    let (link, none) = (book.accept(first.number), book.accept(first.number))
    #expect(link == 7 && none == nil)
    book.listeners[first.number] = nil
    // Where somebody listened once, connects still go.
    #expect(book.listener(at: here) == nil && book.machine(at: here) == 3)
  }

  @Test func `a partition keeps two groups apart, both ways`() {
    var partitions = NetworkPartitions()
    let one = partitions.add([1], [2])
    let all = partitions.add([4], nil)
    #expect(partitions.separate(1, 2) && partitions.separate(2, 1))
    #expect(!partitions.separate(1, 3))
    #expect(partitions.separate(9, 4))
    let (hasEnded, endsAgain) = (partitions.remove(one), partitions.remove(one))
    #expect(hasEnded && !endsAgain)
    #expect(partitions.numbers == [all])
    #expect(!partitions.separate(1, 2))
  }

  @Test func `conditions that no link can have trap, also when they are set later`() async {
    await #expect(processExitsWith: .failure) {
      var conditions = LinkConditions.normal
      conditions.bandwidth = 0
    }
    await #expect(processExitsWith: .failure) {
      var conditions = LinkConditions.normal
      conditions.readSize = 0...9
    }
    await #expect(processExitsWith: .failure) {
      var conditions = LinkConditions.normal
      conditions.writeSize = 0...9
    }
    await #expect(processExitsWith: .failure) {
      var conditions = LinkConditions.normal
      conditions.window = 0
    }
    await #expect(processExitsWith: .success) {
      var conditions = LinkConditions.normal
      (conditions.bandwidth, conditions.readSize) = (1, 1...9)
      (conditions.writeSize, conditions.window) = (1...9, 1)
      conditions.bandwidth = nil
    }
  }

  @Test func `ready sockets come in their order, and once`() {
    var ready = ReadySockets()
    let mayBeAny = { [box = ready.mayBeAny] in box.value.load(ordering: .relaxed) }
    #expect(!mayBeAny())
    ready.insert(.listener(2))
    ready.insert(.listener(1))
    ready.insert(.listener(2))
    #expect(mayBeAny())
    #expect(ready.first == .listener(2))
    let taken = ready.takeAll()
    #expect(taken == [.listener(2), .listener(1)])
    #expect(ready.first == nil)
    #expect(!mayBeAny())
  }
}
