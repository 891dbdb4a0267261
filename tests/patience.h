#pragma once

#include <QTest>

/// How long a test waits for something that must come, in ms. It decides nothing but when a test that has failed says so: on a busy
/// machine everything comes, later. QtTest waits three times as long before it says what did not come, and that must be within ctest's
/// limit of 300 s, or nobody learns it.
inline constexpr int kPatienceMs = 75'000;

// QtTest's own limit of 5 s judges the machine, not the program.
#undef QTRY_VERIFY
#define QTRY_VERIFY(expr) QTRY_VERIFY_WITH_TIMEOUT((expr), kPatienceMs)
#undef QTRY_VERIFY2
#define QTRY_VERIFY2(expr, messageExpression) QTRY_VERIFY2_WITH_TIMEOUT((expr), messageExpression, kPatienceMs)
#undef QTRY_COMPARE
#define QTRY_COMPARE(expr, expected) QTRY_COMPARE_WITH_TIMEOUT((expr), expected, kPatienceMs)
