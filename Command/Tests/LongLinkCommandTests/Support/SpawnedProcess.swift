// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A program that runs as a process of its own, with pipes for its standard streams.
///
/// Foundation's `Process` does not do here: it reads beyond the end of a buffer when it starts a
/// program while some 1,360 descriptors are open, as in tests of attacks, and `waitUntilExit`
/// keeps a CPU busy.
final class SpawnedProcess: Sendable {
  let id: Int32
  let input: FileHandle
  let output: FileHandle
  let errors: FileHandle
  /// What `waitpid` says; nil while it runs.
  private let status = Mutex<Int32?>(nil)
  private let end = DispatchGroup()

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Starts the program at the path that comes first, with the others as its arguments.
  init(_ command: [String], environment: [String: String] = [:]) throws {
    let pipes = try (0..<3).map { _ in try SpawnedProcess.pipe() }
    input = FileHandle(fileDescriptor: pipes[0].write, closeOnDealloc: true)
    output = FileHandle(fileDescriptor: pipes[1].read, closeOnDealloc: true)
    errors = FileHandle(fileDescriptor: pipes[2].read, closeOnDealloc: true)
    let ends = [pipes[0].read, pipes[1].write, pipes[2].write]
    defer { for descriptor in ends { close(descriptor) } }
    let all = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    id = try SpawnedProcess.spawn(command, all.map { "\($0)=\($1)" }, ends)
    end.enter()
    Thread.detachNewThread { [self] in reap() }
  }

  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    // The system writes both descriptors during the call.
    guard unsafe Foundation.pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
    return (ends[0], ends[1])
  }

  private typealias CloseFrom =
    @convention(c) (
      UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32
    ) -> Int32

  /// `posix_spawn_file_actions_addclosefrom_np` of glibc 2.34, which its header shows to programs
  /// in C alone: the child has no descriptor but its standard streams.
  // The name is that of a function of this type.
  private static let closeFrom = unsafe dlsym(nil, "posix_spawn_file_actions_addclosefrom_np")
    .map { unsafe unsafeBitCast($0, to: CloseFrom.self) }

  private static func spawn(
    _ command: [String], _ environment: [String], _ streams: [Int32]
  ) throws -> Int32 {
    // All pointers outlive the call, and what the calls allocate is released behind it.
    let arguments: [UnsafeMutablePointer<CChar>?] = unsafe command.map { unsafe strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] =
      unsafe environment.map { unsafe strdup($0) } + [nil]
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe (arguments + variables).forEach { unsafe free($0) }
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
    }
    for (stream, descriptor) in streams.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(stream))
    }
    guard let closeFrom = unsafe closeFrom, unsafe closeFrom(&actions, 3) == 0 else {
      throw Failure(description: "this system cannot close a child's descriptors")
    }
    // The thread that starts it may have blocked signals.
    var mask = sigset_t()
    unsafe sigemptyset(&mask)
    unsafe posix_spawnattr_setsigmask(&attributes, &mask)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var id: Int32 = 0
    let result = unsafe posix_spawn(
      &id, command[0], &actions, &attributes, arguments, variables)
    guard result == 0 else {
      throw Failure(description: "\(command[0]): \(unsafe String(cString: strerror(result)))")
    }
    return id
  }

  private func reap() {
    var information = unsafe siginfo_t()
    // The process stays a zombie, so that nobody else has its number, until the status is there.
    while unsafe waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
    status.withLock { status in
      var value: Int32 = 0
      while unsafe waitpid(id, &value, 0) == -1, errno == EINTR {}
      status = value
    }
    end.leave()
  }

  var isRunning: Bool { status.withLock { $0 == nil } }

  func send(_ signal: Int32) {
    status.withLock { if $0 == nil { kill(id, signal) } }
  }

  /// Blocks the calling thread until its end, and returns its exit code; nil if a signal ended it.
  @discardableResult
  func waitUntilExit() -> Int32? {
    end.wait()
    // wait(2): the lower seven bits are the signal, the next byte is the exit code.
    return status.withLock { $0.flatMap { $0 & 0x7F == 0 ? $0 >> 8 & 0xFF : nil } }
  }

  /// Runs a program to its end on the calling thread. It must not fill the pipe of its errors
  /// before it closes its standard output.
  static func run(_ command: [String]) throws -> Finished {
    let process = try SpawnedProcess(command)
    try process.input.close()
    let output = try process.output.readToEnd() ?? Data()
    let errors = try process.errors.readToEnd() ?? Data()
    return Finished(
      output: [UInt8](output), errors: String(decoding: errors, as: UTF8.self),
      code: process.waitUntilExit())
  }
}
