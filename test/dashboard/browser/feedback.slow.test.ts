import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { stage } from './browser.ts'

const set = stage()

/** Verdicts with outcomes and feedback of the last days, the same in each run. */
function reportBefore(): void {
  const database = new Sqlite(join(set.home, 'data', 'ev.sqlite'))
  const count = database.prepare(
    'insert into feedback_count select id, 0, ?, ?, ?, ?, ? from account limit 1',
  )
  for (const row of COUNTS) count.run(...row)
  const received = database.prepare(
    'insert into feedback_day select id, ?, ?, ?, ? from account limit 1',
  )
  const today = Math.floor(Date.now() / DAY) * DAY
  for (let ago = 0; ago < 5; ago++) {
    received.run(today - ago * DAY, 'api', 'delivered', 900 + 37 * ago)
    received.run(today - ago * DAY, ago % 2 === 0 ? 'api' : 'import', 'bounced', 40 + 7 * ago)
  }
  database.close()
}

/** Reason, operator, confidence, correct and wrong verdicts. */
const COUNTS: readonly (readonly [string, string, number, number, number])[] = [
  ['accepted_email', 'google', 98, 4_102, 71],
  ['accepted_email', 'microsoft-365', 93, 1_804, 122],
  ['accepted_email', 'hoster.example', 84, 402, 91],
  ['role_account', 'microsoft-365', 88, 310, 38],
  ['catch_all/low', 'hoster.example', 91, 205, 14],
  ['catch_all/medium', 'hoster.example', 41, 160, 214],
  ['catch_all', '', 28, 61, 150],
  ['low_deliverability', 'yahoo', 55, 88, 64],
  ['rejected_email', 'google', 99, 844, 3],
]

test('feedback is accessible, fits a phone and has a stable layout, empty and with data', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/feedback')
  await page.getByText('No feedback yet').waitFor()
  await visitor.check('feedback-empty')
  reportBefore()
  await page.addInitScript(`
    window.shift = 0
    new PerformanceObserver(list => {
      for (const { value } of list.getEntries()) window.shift += value
    }).observe({ type: 'layout-shift', buffered: true })`)
  await visitor.go('/feedback')
  await page.locator('.reliability svg').waitFor()
  expect(await page.evaluate('window.shift')).toBe(0)
  await page.getByText('Show as table').click()
  expect(await page.locator('.reliability + details tbody tr').count()).toBe(5)
  await visitor.check('feedback')
})
