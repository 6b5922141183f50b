// SPDX-License-Identifier: Apache-2.0

package import Testing

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// Skips a test where the machine lacks what it needs; in CI the test fails instead, since one that
/// is skipped there shows nothing.
package struct Needs: SuiteTrait, TestTrait {
  fileprivate let problem: @Sendable () -> String?

  package var isRecursive: Bool { false }

  package func prepare(for test: Test) async throws {
    let name = test.displayName ?? test.name
    guard let problem = try check(name) else { return }
    note("\(name): \(problem)")
    try await ConditionTrait.disabled("\(problem)").prepare(for: test)
  }

  /// Why a test is to be skipped, nil where it runs; in CI that is thrown.
  package func check(_ name: String) throws -> String? {
    guard let problem = problem() else { return nil }
    guard variable("CI") == nil else {
      throw NeedsError(description: "\(name) must not be skipped in CI: \(problem)")
    }
    return problem
  }

  /// What `make test` sums up at its end.
  private func note(_ line: String) {
    guard let path = variable("LONGLINK_SKIPPED"), let file = unsafe fopen(path, "a") else {
      return
    }
    unsafe fputs("\(line)\n", file)
    unsafe fclose(file)
  }

  /// The value of a variable of the environment; nil where it is empty.
  private func variable(_ name: String) -> String? {
    guard let text = unsafe getenv(name), unsafe text.pointee != 0 else { return nil }
    return unsafe String(cString: text)
  }
}

/// A test of which the machine lacks what it needs.
package struct NeedsError: Error, CustomStringConvertible {
  package let description: String
}

extension Trait where Self == Needs {
  /// Looks for what a test needs, and names what is missing; nil where nothing is.
  package static func unless(_ problem: @autoclosure @escaping @Sendable () -> String?) -> Self {
    Needs(problem: problem)
  }
}
