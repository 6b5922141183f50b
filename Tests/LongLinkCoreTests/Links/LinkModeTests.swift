// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Whether a client should have a link: the modes of its machine.
@Suite struct LinkModeTests {
  private typealias Mode = LinkMachine.Mode

  private static let modes: [Mode] = [
    .idle, .active, .suspended(wantsLink: false), .suspended(wantsLink: true), .closed,
  ]

  @Test func `a mode is followed only by those that it can become`() {
    let followers: [[Mode]] = [
      [.active, .suspended(wantsLink: false), .closed],
      [.suspended(wantsLink: true), .closed],
      [.idle, .suspended(wantsLink: true), .closed],
      [.active, .closed],
      [],
    ]
    for (mode, possible) in zip(Self.modes, followers) {
      for next in Self.modes {
        #expect(mode.canBecome(next) == possible.contains(next), "\(mode) to \(next)")
      }
    }
  }

  @Test func `a machine that is made to enter an impossible mode traps`() async {
    await #expect(processExitsWith: .failure) {
      var machine = LinkMachine.make()
      machine.become(.closed)
      machine.become(.idle)
    }
    await #expect(processExitsWith: .success) {
      var machine = LinkMachine.make()
      machine.become(.active)
      machine.become(.closed)
    }
  }

  private enum Command: CaseIterable {
    case start, suspend, resume, close
  }

  @Test func `commands in any order lead to the mode that was asked for`() {
    for number in 0..<1024 {
      let commands = (0..<5).map { Command.allCases[number >> (2 * $0) & 3] }
      var machine = LinkMachine.make()
      var (wantsLink, isSuspended, isClosed) = (false, false, false)
      for command in commands {
        switch command {
        case .start:
          machine.start(at: .ms(0)) { .max }
          wantsLink = true
        case .suspend:
          machine.suspend(lingering: 0, at: .ms(0))
          isSuspended = true
        case .resume:
          machine.resume(at: .ms(0)) { .max }
          isSuspended = false
        case .close:
          machine.close(at: .ms(0))
          isClosed = true
        }
        let asked: Mode =
          isClosed
          ? .closed
          : isSuspended ? .suspended(wantsLink: wantsLink) : wantsLink ? .active : .idle
        #expect(machine.mode == asked, "\(commands)")
      }
    }
  }
}
