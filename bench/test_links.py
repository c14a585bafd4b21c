# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover -s bench"""

import unittest

import links
import links_raw_peer


class SlowStart(unittest.TestCase):
    # The line's rate counts without a round-trip time, or once the window has grown.
    def test_rate(self):
        rate = 100e6 / 8 * links.HEADERS
        self.assertAlmostEqual(links.slow_start_s(64 << 20, 100, 0), (64 << 20) / rate)
        gap = links.slow_start_s(64 << 20, 100, 0.02) - links.slow_start_s(32 << 20, 100, 0.02)
        self.assertAlmostEqual(gap, (32 << 20) / rate)

    # Bytes that fit into the first window go at once. Those that fit into the first three need two round trips more.
    def test_windows(self):
        window = links.SEGMENT * links.FIRST_SEGMENTS
        self.assertLess(links.slow_start_s(window, 1000, 0.1), 0.01)
        self.assertAlmostEqual(links.slow_start_s(7 * window, 1000, 0.1), 0.2, delta=0.01)


class Figures(unittest.TestCase):
    # The yardstick counts as `gossamer bench links` does: the first transfer and the idle round trip apart.
    def test_transfers(self):
        found = links_raw_peer.figures("message", [3.02, 1.22, 0.82, 0.92], 10_000_000, {"rate_mbps": 100}, idle=0.02)
        self.assertEqual((found["count"], round(found["first_ms"]), round(found["median_ms"])), (3, 3000, 900))
        self.assertAlmostEqual(found["share_of_rate"], 2.4 / 2.9)

    def test_quantiles(self):
        seconds = [number / 1e3 for number in range(100, 0, -1)]
        found = links_raw_peer.figures("exchange", seconds, 64, {"rate_mbps": 0})
        self.assertAlmostEqual(found["median_ms"], 50.5)
        self.assertAlmostEqual(found["p90_ms"], 90)
        self.assertAlmostEqual(found["most_ms"], 100)


if __name__ == "__main__":
    unittest.main()
