/* The name under which programs written for TI's integer on-device training include the library. */
#ifndef INTEGER_ODL_H
#define INTEGER_ODL_H

#include "odt/ti.h"

#endif
