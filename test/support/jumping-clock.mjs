// Loaded before ev: its wall clock is ahead by as many milliseconds as a file says. The monotonic clock runs on.
import { readFileSync } from 'node:fs'

const RealDate = Date
const file = process.env.EV_TEST_CLOCK
const aheadMs = () => Number(readFileSync(file, 'utf8'))

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + aheadMs()] : given))
  }

  static now() {
    return RealDate.now() + aheadMs()
  }
}
