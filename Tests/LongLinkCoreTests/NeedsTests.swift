// SPDX-License-Identifier: Apache-2.0

import LongLinkTestSupport
import Testing

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// What becomes of tests that the machine has no means for.
@Suite struct NeedsTests {
  @Test func `a test with all that it needs runs`() throws {
    #expect(try Needs.unless(nil).check("a test") == nil)
  }

  @Test func `outside CI a test is skipped if it needs something that is missing`() async {
    await #expect(processExitsWith: .success) {
      unsafe unsetenv("CI")
      let problem = try Needs.unless("there is no cable").check("a test")
      #expect(problem == "there is no cable")
    }
  }

  @Test func `in CI a test fails if it needs something that is missing, and names it`() async {
    await #expect(processExitsWith: .success) {
      unsafe setenv("CI", "true", 1)
      let error = #expect(throws: NeedsError.self) {
        try Needs.unless("there is no cable").check("a test")
      }
      #expect(error?.description == "a test must not be skipped in CI: there is no cable")
    }
  }
}
