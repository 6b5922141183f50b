// SPDX-License-Identifier: Apache-2.0

#if Operations
public import ServiceLifecycle
internal import UnixSignals

extension LiveConfiguration: Service {
  /// Reads the sources again at each SIGHUP and every `interval`, until the group of services ends.
  public func run() async throws {
    let hangUps = await UnixSignalsSequence(trapping: .sighup)
    let (triggers, trigger) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    await withTaskCancellationOrGracefulShutdownHandler {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for await _ in hangUps { trigger.yield() } }
        group.addTask { [interval] in
          while (try? await Task.sleep(for: interval)) != nil { trigger.yield() }
        }
        for await _ in triggers { await reload() }
        group.cancelAll()
      }
    } onCancelOrGracefulShutdown: {
      trigger.finish()
    }
  }
}
#endif
