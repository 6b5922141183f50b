// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The input from the terminal, key by key if there is a keyboard.
enum Terminal {
  enum Input: Sendable {
    /// The user has begun a line, or continued it after a pause.
    case typing
    case line(String)
  }

  /// The whole input; a separate thread reads it.
  static func inputs() -> AsyncStream<Input> {
    let (stream, continuation) = AsyncStream.makeStream(of: Input.self)
    Thread.detachNewThread {
      let isKeyboard = isatty(STDIN_FILENO) == 1
      var former = termios()
      if isKeyboard {
        tcgetattr(STDIN_FILENO, &former)
        var keys = former
        keys.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &keys)
      }
      read(echoes: isKeyboard, into: continuation)
      if isKeyboard { tcsetattr(STDIN_FILENO, TCSANOW, &former) }
      continuation.finish()
    }
    return stream
  }

  private static func read(echoes: Bool, into continuation: AsyncStream<Input>.Continuation) {
    var line: [UInt8] = []
    var told = Date.distantPast
    var byte: UInt8 = 0
    while Foundation.read(STDIN_FILENO, &byte, 1) == 1, byte != 4 {
      switch byte {
      case UInt8(ascii: "\n"):
        if echoes { echo([byte]) }
        let text = String(decoding: line, as: UTF8.self)
        line = []
        if !text.isEmpty { continuation.yield(.line(text)) }
        if text == "/quit" { return }
      case 8, 127:
        // A character of several bytes is deleted as a whole.
        while let last = line.popLast(), last & 0xC0 == 0x80 {}
        if echoes { echo(Array("\r\u{1B}[K".utf8) + line) }
      default:
        line.append(byte)
        if echoes { echo([byte]) }
        if Date().timeIntervalSince(told) > 3 {
          told = Date()
          continuation.yield(.typing)
        }
      }
    }
  }

  private static func echo(_ bytes: [UInt8]) {
    FileHandle.standardOutput.write(Data(bytes))
  }
}
