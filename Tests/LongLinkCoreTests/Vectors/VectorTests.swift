// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct VectorTests {
  @Test func `the vectors are found, and their names differ`() throws {
    let names = try Vector.all().map(\.name)
    #expect(names.count > 150)
    #expect(Set(names).count == names.count)
  }

  @Test func `every rule of the wire has a vector`() throws {
    let rules = Set(
      try Vector.all().flatMap { vector in
        vector.steps.compactMap { step -> String? in
          guard case .expect(let expected) = step, expected.name == "violation" else { return nil }
          return expected.fields.first
        }
      })
    for rule in Violation.Rule.allCases where !Violation.Rule.ofDialects.contains(rule) {
      #expect(rules.contains(rule.rawValue), "no vector for \(rule.rawValue)")
    }
  }

  @Test(arguments: try Vector.all(), VectorRunner.Mode.allCases)
  func `a connection makes of the bytes what the vector says`(
    vector: Vector, mode: VectorRunner.Mode
  ) {
    let runner = VectorRunner(vector, mode)
    runner.run()
    #expect(runner.problems == [], "\(vector.name)")
  }
}
