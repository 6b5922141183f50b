// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// Asks the application for the client's credential, on the client's loop.
///
/// There is one call at a time, whose result goes to all who have asked in the meantime. A call
/// that takes too long fails for them, and no other call begins before it has returned.
final class CredentialSource: TimerHandler {
  typealias Function = @Sendable () async throws -> [UInt8]
  typealias Completion = (Result<[UInt8], ConnectFailure>) -> Void

  private let function: Function
  private let loop: EventLoop
  /// The most time that one call may take, in nanoseconds.
  private let timeout: Int64
  private var waiters: [Completion] = []
  private var timer: LoopTimer?
  private var task: Task<Void, Never>?

  init(_ function: @escaping Function, timeout: Int64, on loop: EventLoop) {
    self.function = function
    self.timeout = timeout
    self.loop = loop
  }

  /// Calls `completion` with the credential, later on the loop.
  func ask(_ completion: @escaping Completion) {
    waiters.append(completion)
    guard timer == nil else { return }
    timer = loop.schedule(at: loop.now + timeout, self, token: 0)
    // If an earlier call that took too long has not returned yet, wait for its end.
    if task == nil { call() }
  }

  private func call() {
    let reference = LoopBound(self, on: loop)
    task = Task(executorPreference: loop) { [function] in
      let result: Result<[UInt8], any Error>
      do {
        result = .success(try await function())
      } catch {
        result = .failure(error)
      }
      reference.loop.execute { reference.value.returned(result) }
    }
  }

  private func returned(_ result: Result<[UInt8], any Error>) {
    let wasGivenUp = isGivenUp
    (task, isGivenUp) = (nil, false)
    guard let timer else { return }
    // The result of a call that was given up is not for those who have asked since then.
    guard !wasGivenUp else { return call() }
    loop.cancel(timer)
    self.timer = nil
    switch result {
    case .success(let credential) where credential.count > Wire.credentialLimit:
      let limit = Wire.credentialLimit
      resume(.failure(failure("it has \(credential.count) bytes; \(limit) are allowed")))
    case .success(let credential): resume(.success(credential))
    case .failure(let error): resume(.failure(failure("\(error)")))
    }
  }

  /// Whether the running call was given up.
  private var isGivenUp = false

  func timerFired(token: UInt64) {
    timer = nil
    isGivenUp = task != nil
    task?.cancel()
    resume(.failure(failure("the function did not return in time")))
  }

  private func resume(_ result: Result<[UInt8], ConnectFailure>) {
    let waiters = waiters
    self.waiters = []
    for waiter in waiters { waiter(result) }
  }

  private func failure(_ detail: String) -> ConnectFailure {
    ConnectFailure("credentialFailed", detail: "there is no credential: \(detail)")
  }

  /// Gives up the running call, because the client is closed.
  func stop() {
    if let timer { loop.cancel(timer) }
    timer = nil
    waiters = []
    task?.cancel()
  }
}
