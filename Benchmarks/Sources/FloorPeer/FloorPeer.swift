// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import CFloor
import Foundation

/// The floor: the same frames over epoll in C, with nothing around them.
@main
struct FloorPeer: ParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [Serve.self, Generate.self])

  struct Serve: ParsableCommand {
    @Flag(help: "Ask the kernel again and again instead of sleeping.")
    var spin = false

    func run() throws {
      var port: UInt16 = 0
      let listener = floor_listen(&port)
      let spins = spin
      Thread.detachNewThread { floor_serve(listener, spins) }
      Serving.listening(on: port)
      Serving.waitForTheEnd { floor_requests() }
    }
  }

  struct Generate: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "load")
    @OptionGroup var load: Load
    @Flag(help: "Ask the kernel again and again instead of sleeping.")
    var spin = false

    /// What the load generator tells of.
    final class Notes {
      let meter: Meter
      var begin = Usage.now
      var end = Usage.now

      init(_ load: Load) { meter = Meter(load) }
    }

    func run() throws {
      let notes = Notes(load)
      let listener = floor_listener(
        context: Unmanaged.passUnretained(notes).toOpaque(),
        took: { context, nanoseconds, count in
          Generate.notes(context).meter.took(nanoseconds, count: count)
        },
        began: { context in
          let notes = Generate.notes(context)
          notes.meter.beginCounting()
          notes.begin = Usage.now
        },
        ended: { context in Generate.notes(context).end = Usage.now })
      let outcome = floor_generate(
        floor_load(
          port: load.port, connections: CInt(load.connections), in_flight: CInt(load.inFlight),
          body: CInt(load.body), warm_up: load.warmUp, seconds: load.seconds,
          stride: CInt(Load.comparedStride), spins: spin),
        listener)
      withExtendedLifetime(notes) {}
      try notes.meter.outcome(
        requests: outcome.requests, all: outcome.all_requests, from: notes.begin, to: notes.end
      ).print()
    }

    private static func notes(_ context: UnsafeMutableRawPointer?) -> Notes {
      Unmanaged<Notes>.fromOpaque(context!).takeUnretainedValue()
    }
  }
}
