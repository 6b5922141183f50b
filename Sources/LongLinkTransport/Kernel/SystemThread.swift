// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem

/// Runs a function on a new thread. Returns 0, or an error number if the system has no thread left.
func systemThread(named name: String, _ body: @escaping @Sendable () -> Void) -> CInt {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  let start = unsafe Unmanaged.passRetained(Start(body))
  let failure = unsafe cll_thread_start(
    nil,
    name,
    1 << 20,
    { argument in
      let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
      start.body()
    },
    start.toOpaque()
  )
  if failure != 0 { unsafe start.release() }
  return failure
}
