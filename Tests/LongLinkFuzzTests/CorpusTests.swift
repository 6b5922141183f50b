import LongLinkFuzz
import Testing

@Suite struct CorpusTests {
  @Test(arguments: FuzzTarget.allCases)
  func `nothing at all is no surprise`(target: FuzzTarget) throws {
    try target.run([])
  }
}
