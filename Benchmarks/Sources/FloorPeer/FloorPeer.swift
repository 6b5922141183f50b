// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import CFloor
import Foundation

/// The floor: the same frames over epoll in C, with nothing around them.
@main
struct FloorPeer: ParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [
    Serve.self, Generate.self, Stream.self,
  ])

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

    func run() throws {
      try Notes(Meter(load)).measure { listener in
        floor_generate(
          floor_load(
            port: load.port, connections: CInt(load.connections), in_flight: CInt(load.inFlight),
            body: CInt(load.body), warm_up: load.warmUp, seconds: load.seconds,
            stride: CInt(Load.comparedStride), spins: spin),
          listener)
      }
    }
  }

  struct Stream: ParsableCommand {
    @OptionGroup var load: StreamLoad

    func run() throws {
      let direction: floor_direction =
        switch load.direction {
        case .down: floor_down
        case .up: floor_up
        case .beside: floor_beside
        }
      try Notes(Meter(lanes: 0, body: 0, timedStride: 1)).measure { listener in
        floor_stream(
          floor_stream_load(
            port: load.port, direction: direction, body: CInt(load.body), window: load.window,
            warm_up: load.warmUp, seconds: load.seconds, stride: CInt(Load.comparedStride)),
          listener)
      }
    }
  }
}

/// What the load generator reports while it runs.
private final class Notes {
  let meter: Meter
  var begin = Usage.now
  var end = Usage.now

  init(_ meter: Meter) { self.meter = meter }

  /// Runs a load and prints its outcome.
  func measure(_ load: (floor_listener) -> floor_outcome) throws {
    let listener = floor_listener(
      context: Unmanaged.passUnretained(self).toOpaque(),
      took: { context, nanoseconds, count in
        Notes.at(context).meter.took(nanoseconds, count: count)
      },
      began: { context in
        let notes = Notes.at(context)
        notes.meter.beginCounting()
        notes.begin = Usage.now
      },
      ended: { context in Notes.at(context).end = Usage.now })
    let outcome = withExtendedLifetime(self) { load(listener) }
    try meter.outcome(
      requests: outcome.requests, all: outcome.all_requests, from: begin, to: end
    ).print()
  }

  private static func at(_ context: UnsafeMutableRawPointer?) -> Notes {
    Unmanaged<Notes>.fromOpaque(context!).takeUnretainedValue()
  }
}
