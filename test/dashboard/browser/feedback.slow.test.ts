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

/** Sums the layout shifts of a page. */
const COUNT_SHIFTS = `
  window.shift = 0
  new PerformanceObserver(list => {
    for (const { value } of list.getEntries()) window.shift += value
  }).observe({ type: 'layout-shift', buffered: true })`

test('feedback is accessible, fits a phone and has a stable layout, empty and with data', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/feedback')
  await page.getByText('No feedback yet').waitFor()
  await visitor.check('feedback-empty')
  reportBefore()
  await page.addInitScript(COUNT_SHIFTS)
  await visitor.go('/feedback')
  await page.locator('.reliability svg').waitFor()
  expect(await page.evaluate('window.shift')).toBe(0)
  await page.getByText('Show as table').click()
  expect(await page.locator('.reliability + details tbody tr').count()).toBe(5)
  await visitor.check('feedback')
})

test('feedback sources are created and deleted with the keyboard, accessible and with a stable layout', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await page.addInitScript(COUNT_SHIFTS)
  const press = async (role: 'link' | 'button', name: string) => {
    await page.getByRole(role, { name, exact: true }).focus()
    const loaded = page.waitForEvent('load')
    await page.keyboard.press('Enter')
    await loaded
  }
  const check = async (name: string) => {
    expect([name, await page.evaluate('window.shift')]).toEqual([name, 0])
    await visitor.check(name)
  }
  await visitor.go('/feedback')
  await press('link', 'Sources')
  await page.getByText('No feedback sources yet').waitFor()
  await check('sources-empty')
  await press('link', 'New source')
  await press('link', 'Mailgun')
  await page.getByLabel('HTTP webhook signing key').fill('short')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  expect(visitor.faults.splice(0)).toEqual([expect.stringContaining('400 (Bad Request)')])
  await check('source-rejected')
  await page.getByLabel('HTTP webhook signing key').fill('key-0123456789abcdef')
  await page.keyboard.press('Enter')
  await page.getByText('No request of Mailgun has arrived yet.').waitFor()
  await check('source')
  await press('link', 'New source')
  await press('link', 'Postmark')
  await check('source-new')
  await press('button', 'Create source')
  await page.getByText('The password is shown only once.').waitFor()
  await check('source-password')
  await press('link', 'I have set it')
  await press('link', 'Feedback sources')
  await page.getByRole('row', { name: 'Postmark' }).waitFor()
  await check('sources')
  await press('link', 'Postmark')
  await page.getByText('Delete source', { exact: true }).focus()
  await page.keyboard.press('Enter')
  await visitor.check('source-delete')
  await press('button', 'Yes, delete source')
  await page.getByText('Feedback source deleted.').waitFor()
  expect(await page.getByRole('row', { name: 'Postmark' }).count()).toBe(0)
})
