import Foundation
import LongLinkTesting
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

/// The drawings of a run.
@Suite struct TimelineTests {
  private func timeline(_ seed: UInt64) async throws -> SimulationTimeline {
    try #require(try await Scenario(seed: seed, profile: .restarts).run(recording: true).timeline)
  }

  @Test func `a run that is not recorded has none`() async throws {
    #expect(try await Scenario(seed: 1, profile: .calm).run().timeline == nil)
  }

  @Test func `the text has a lane for each process, and frames, faults and states`() async throws {
    let text = try await timeline(2).text()
    let lines = text.split(separator: "\n")
    #expect(lines[0].contains("client-0") && lines[0].contains("server-0"))
    #expect(lines.contains { $0.contains("hello") && $0.contains("●") && $0.contains("▶") })
    #expect(lines.contains { $0.contains("welcome") && $0.contains("◀") })
    #expect(lines.contains { $0.contains("request type") && $0.contains("#50") })
    #expect(lines.contains { $0.contains("response 200 #50") })
    #expect(lines.contains { $0.contains("*** fault:") && $0.contains("✱") })
    #expect(lines.contains { $0.contains("connected by attempt 1") && $0.contains("◆") })
    #expect(lines.contains { $0.contains("connects to 10.0.0.") && $0.contains("○") })
  }

  @Test func `a part can be cut out`() async throws {
    let whole = try await timeline(2)
    let part = whole.cut(
      from: LinkInstant(nanoseconds: 100_000_000_000), to: LinkInstant(nanoseconds: 200_000_000_000)
    )
    #expect(part.count > 0 && part.count < whole.count)
    let seconds = part.text().split(separator: "\n").dropFirst().compactMap { line in
      line.split(separator: " ").first.flatMap { Double($0) }
    }
    #expect(seconds.count == part.count)
    #expect(seconds.allSatisfy { (100...200).contains($0) })
    #expect(seconds == seconds.sorted())
  }

  @Test func `the SVG is well-formed and bounded`() async throws {
    let timeline = try await timeline(2)
    for limit in [10, 4_000] {
      let svg = timeline.svg(limit: limit)
      let parser = XMLParser(data: Data(svg.utf8))
      #expect(parser.parse(), "\(String(describing: parser.parserError))")
      #expect(svg.contains("client-0"))
      #expect(svg.contains("more events are left out") == (timeline.count > limit))
    }
    #expect(timeline.svg(limit: 10).count < 20_000)
  }
}
