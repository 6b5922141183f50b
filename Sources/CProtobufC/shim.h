// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CPROTOBUFC_SHIM_H
#define LONGLINK_CPROTOBUFC_SHIM_H

#include <protobuf-c/protobuf-c.h>

#endif
