import { expect, test } from 'vitest'
import { EvClient } from '../../../src/client/client.ts'
import { stage } from './browser.ts'

const set = stage()

test('the overview is accessible, fits a phone and has a stable layout, empty and with data', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/overview')
  await page.getByRole('heading', { name: 'Verify an address' }).waitFor()
  await visitor.check('overview-empty')
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  for (const name of ['user1', 'user2', 'nobody']) await client.verify.single(`${name}@polite.test`)
  await page.addInitScript(`
    window.shift = 0
    new PerformanceObserver(list => {
      for (const { value } of list.getEntries()) window.shift += value
    }).observe({ type: 'layout-shift', buffered: true })`)
  await expect
    .poll(async () => {
      await visitor.go('/overview')
      return page.getByText('Recent verifications').count()
    })
    .toBe(1)
  await page.locator('.chart canvas').waitFor()
  expect(await page.evaluate('window.shift')).toBe(0)
  await visitor.check('overview')
})

test('on a phone the menu opens the pages, with and without JavaScript', async () => {
  for (const scripts of [true, false]) {
    const { page, go } = await set.open({ width: 390, scripts })
    await go('/keys')
    expect(await page.getByRole('link', { name: 'Lists' }).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('link', { name: 'Lists' }).click()
    await page.waitForURL(/\/lists$/)
  }
})

test('a lost connection is shown, keeps the page of a form, and ends by itself', async () => {
  const { page, context, go } = await set.open()
  await go('/keys/new')
  await page.getByLabel('Name').fill('Shop')
  await context.setOffline(true)
  await page.getByRole('button', { name: 'Create key' }).click()
  const lost = page.getByText('Connection lost. Reconnecting')
  await lost.waitFor()
  expect(page.url()).toContain('/keys/new')
  expect(await page.getByLabel('Name').inputValue()).toBe('Shop')
  await context.setOffline(false)
  await lost.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('heading', { name: 'Key created' }).waitFor()
})

test('times and charts survive a locale that Intl rejects', async () => {
  const { page, go, faults } = await set.open()
  await page.addInitScript(
    `Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true })`,
  )
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  await client.verify.single('user3@polite.test')
  await go('/usage')
  await page.locator('.chart canvas').waitFor()
  expect(await page.locator('#history time').first().textContent()).toMatch(/now|ago/)
  expect(faults).toEqual([])
})
