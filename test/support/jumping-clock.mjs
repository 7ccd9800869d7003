// Preloaded before ev: sets the wall clock forward by the number of milliseconds in a file. The
// monotonic clock is unaffected.
import { readFileSync } from 'node:fs'

const RealDate = Date
const file = process.env.CLOCK_FILE
const aheadMs = () => Number(readFileSync(file, 'utf8'))

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + aheadMs()] : given))
  }

  static now() {
    return RealDate.now() + aheadMs()
  }
}
