// SPDX-License-Identifier: Apache-2.0
#ifndef CLONGLINKREADERS_H
#define CLONGLINKREADERS_H

#include "CLongLinkReadersEncoding.h"
#include "CLongLinkReadersJSON.h"
#include "CLongLinkReadersXML.h"

#endif
