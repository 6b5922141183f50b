// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>

#include "connection.h"

/// The types of the frames of a stream, and of the request that ends one from the server.
static const uint32_t items_wanted = 3, items_stop = 4, items_follow = 5;
/// The type of a frame that grants credit.
static const uint32_t items_credit = 0x05u << 24;

/// Serves the stream whose request is the first frame in the buffer, up to its end. Before it
/// responds it adds the items, and the requests that came beside them, to the total.
void stream_serve(int socket, buffer *in, _Atomic uint64_t *total);
