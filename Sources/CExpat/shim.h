// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CEXPAT_SHIM_H
#define LONGLINK_CEXPAT_SHIM_H

#include <expat.h>

#endif
