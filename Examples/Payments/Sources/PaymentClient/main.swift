// SPDX-License-Identifier: Apache-2.0

import LongLink
import Payments

// The method says in its .proto file that its requests run once.
let client = try LongLinkClient(to: .host("127.0.0.1", port: 9030))
let receipt = try await PaymentsClient(client).pay(PayRequest(account: "ann", cents: 500))
print("payment \(receipt.number)")
await client.close()
