import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { periodStart } from '../../../src/accounts/plan.ts'
import { EvClient } from '../../../src/client/client.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { stage } from './browser.ts'

const set = stage()

/** Usage of the 29 days before today, the same in each run. */
function useBefore(): void {
  const database = new Sqlite(join(set.home, 'data', 'ev.sqlite'))
  const insert = database.prepare(
    `insert into usage (account_id, day, key_id, class, verifications, cached, credits)
     select account_id, ?, id, ?, ?, 0, ? from api_key limit 1`,
  )
  for (let ago = 1; ago < 30; ago++) {
    const day = periodStart(Date.now()) - ago * DAY
    const whole = 400 + 150 * ((ago * 7) % 5)
    for (const [kind, percent] of SHARES) {
      insert.run(day, kind, (whole * percent) / 100, (whole * percent) / 100)
    }
  }
  database.close()
}

const SHARES = [
  ['deliverable', 70],
  ['risky', 14],
  ['undeliverable', 12],
  ['unknown', 4],
] as const

test('usage shows the chart, searches the history, and has a stable layout', async () => {
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  useBefore()
  for (const name of ['user1', 'user2', 'nobody']) await client.verify.single(`${name}@polite.test`)
  await client.verify.single('"<img src=x onerror=alert(1)>"@polite.test').catch(() => {})
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/usage')
  await page.locator('.chart canvas').waitFor()
  const height = () => page.evaluate<number>('document.querySelector(".chart").offsetHeight')
  expect(await height()).toBe(260)

  const legend = page.locator('#days-legend')
  expect(await legend.textContent()).toMatch(/All days\s+Deliverable 2,942/)
  // Seven days up to today.
  await page.locator('.chart .u-over').hover({ position: { x: 20, y: 100 } })
  await expect.poll(() => legend.textContent()).toMatch(/\d{4}-\d\d-\d\d\s+Deliverable 490/)
  await page.mouse.move(0, 0)
  await expect.poll(() => legend.textContent()).toMatch(/All days\s+Deliverable 2,942/)
  await visitor.check('usage')

  const ink = () => page.evaluate<string>('document.querySelector(".chart canvas").toDataURL()')
  const before = await ink()
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect.poll(ink).not.toBe(before)

  expect(await page.locator('table#days').isVisible()).toBe(false)
  await page.getByText('Show as table').click()
  expect(await page.locator('table#days tbody tr').count()).toBe(7)

  const rows = page.locator('#history tbody tr')
  await page.evaluate('window.mark = true')
  await page.getByLabel('Part of the address').fill('USER')
  await page.keyboard.press('Enter')
  await expect.poll(() => rows.count()).toBe(2)
  await page.getByLabel('Class').selectOption('undeliverable')
  await page.getByText('No matches.').waitFor()
  expect(await page.evaluate('window.mark')).toBe(true)
  expect(page.url()).toContain('search=USER')
  await page.getByRole('link', { name: '30 days' }).click()
  await page.getByText('Show as table').click()
  expect(await page.locator('table#days tbody tr').count()).toBe(30)
  expect(visitor.faults).toEqual([])
})

test('the chart fills the available width', async () => {
  const { page, go } = await set.open({ width: 1_200 })
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  await client.verify.single('user3@polite.test')
  await go('/usage')
  const canvas = page.locator('.chart canvas')
  await canvas.waitFor()
  const isFitting = () =>
    page.evaluate<boolean>(
      'Math.abs(document.querySelector(".chart canvas").offsetWidth - document.querySelector(".chart").clientWidth) < 2',
    )
  await expect.poll(isFitting).toBe(true)
  await page.setViewportSize({ width: 400, height: 900 })
  await expect.poll(isFitting).toBe(true)
  expect((await canvas.boundingBox())?.width).toBeLessThan(400)
})

test('without JavaScript the numbers are in a table and the history can be searched', async () => {
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  await client.verify.single('user4@polite.test')
  const { context } = await set.open()
  const bare = await context.browser()?.newContext({
    baseURL: set.url,
    javaScriptEnabled: false,
    storageState: await context.storageState(),
  })
  const page = await bare?.newPage()
  if (bare === undefined || page === undefined) throw new Error('there is no browser')
  await page.goto('/usage')
  expect(await page.locator('table#days').isVisible()).toBe(true)
  expect(await page.locator('.chart').isVisible()).toBe(false)
  await page.getByLabel('Part of the address').fill('user4')
  await page.getByRole('button', { name: 'Search' }).click()
  expect(await page.locator('#history tbody tr').count()).toBe(1)
  await bare.close()
})
