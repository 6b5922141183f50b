// SPDX-License-Identifier: Apache-2.0

import LongLinkServer

let ledger = try Ledger(file: "payments.sqlite")
try await ledger.server(at: .host("127.0.0.1", port: 9030)).run(until: .sigterm, .sigint)
try await ledger.store.close()
