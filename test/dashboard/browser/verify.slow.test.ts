import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { stage } from './browser.ts'
import { EVIL, EVIL_EXAMPLE } from './evil-example.ts'

const set = stage({ scenario: EVIL_EXAMPLE })

const row = (page: Page, name: string) => page.locator(`#step-${name}`)

/** Types an address and submits it with Enter. */
async function verify(page: Page, address: string): Promise<void> {
  await page.getByLabel('Email address').fill(address)
  await page.keyboard.press('Enter')
}

/** Waits for the verdict of an address. */
const verdictOf = (page: Page, address: string) =>
  page.locator('#verdict:not(.is-running)').getByText(address, { exact: true }).waitFor()

/** Waits until an address is in the recent checks. */
const listed = (page: Page, address: string) =>
  page.locator('#recent th').getByText(address, { exact: true }).first().waitFor()

test('an address is verified step by step, and the verdict is announced once and gets the focus', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  expect(await page.evaluate('document.activeElement.id')).toBe('email')
  await visitor.check('verify-empty')
  await page.evaluate(`
    window.seen = []
    new MutationObserver(() => {
      const now = [...document.querySelectorAll('.steps > li')].map(li => li.className.slice(3) || '-').join(' ')
      if (now !== window.seen.at(-1)) window.seen.push(now)
    }).observe(document.querySelector('.steps'), { childList: true, subtree: true, characterData: true })
    window.spoken = []
    new MutationObserver(() => window.spoken.push(document.querySelector('#said').textContent))
      .observe(document.querySelector('#said'), { childList: true })`)
  // Its server delays each reply, so that each step is visible.
  await verify(page, 'ann@slow.test')
  await row(page, 'dialogue').getByText('C: EHLO').waitFor({ state: 'attached' })
  expect(await page.locator('#verdict').textContent()).toContain('Verifying')
  await verdictOf(page, 'ann@slow.test')
  const seen = await page.evaluate<string[]>('window.seen')
  expect(seen).toContain('ok ok ok now')
  expect(seen.at(-1)).toBe('ok ok ok ok')
  expect(page.url()).toBe(`${set.url}/verify`)
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('verdict-title')
  expect(await page.evaluate('window.spoken')).toEqual([
    'Verifying ann@slow.test.',
    'ann@slow.test is deliverable. The mail server accepts mail for this address.',
  ])
  await listed(page, 'ann@slow.test')
  await page.locator('#outcome summary').click()
  await row(page, 'dialogue').getByText('C: EHLO').waitFor()
  await visitor.check('verify')
})

test('a suggestion and a recent address are verified with one click', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, 'ann@polite.test')
  await verdictOf(page, 'ann@polite.test')
  await verify(page, 'ann..b@polite.test')
  await verdictOf(page, 'ann..b@polite.test')
  await visitor.check('verify-malformed')
  await verify(page, 'ann@gmail')
  // The verdict before it has a suggestion too.
  await verdictOf(page, 'ann@gmail')
  await page.locator('#verdict').getByRole('button', { name: 'Verify suggestion' }).click()
  await verdictOf(page, 'ann@gmail.com')
  expect(await page.getByLabel('Email address').inputValue()).toBe('ann@gmail.com')
  await listed(page, 'ann@gmail.com')
  await page.getByLabel('Sandbox:').check()
  // The refresh replaces the buttons of the recent checks.
  const refreshed = page.waitForResponse('**/verify/recent')
  await verify(page, 'greylisted@polite.test')
  await page.locator('#verdict').getByText('Simulated').waitFor()
  await refreshed
  await page.getByRole('button', { name: 'Re-verify ann@polite.test' }).first().click()
  await verdictOf(page, 'ann@polite.test')
  expect(await row(page, 'servers').textContent()).toContain('the cached answer is used')
  await page.getByRole('button', { name: 'Re-verify now' }).click()
  await page.locator('#verdict').getByText('Mail server', { exact: true }).nth(1).waitFor()
})

test('markup in an address and in a reply is rendered as text', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, `"${EVIL}"@evil.test`)
  await page.locator('#verdict').getByText('rejected_email').waitFor()
  expect(await row(page, 'dialogue').textContent()).toContain(`C: RCPT TO:<"${EVIL}"@evil.test>`)
  expect(await row(page, 'dialogue').textContent()).toContain(`${EVIL}<script>alert(2)</script>`)
  await verify(page, EVIL)
  await page.locator('#verdict').getByText('invalid_email').waitFor()
  await listed(page, `"${EVIL}"@evil.test`)
  expect(await page.locator('main img, main script').count()).toBe(0)
  expect(visitor.faults).toEqual([])
})

test('a new verification replaces the previous one and does not steal the focus', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, 'bob.1@slow.test')
  await row(page, 'dialogue').getByText('C: EHLO').waitFor({ state: 'attached' })
  await verify(page, 'ann@blocked.test')
  await page.getByLabel('Ignore cached results').focus()
  await page.locator('#verdict').getByText('probe_blocked').waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('again')
  await listed(page, 'ann@blocked.test')
  expect(await page.locator('#verdict').textContent()).not.toContain('slow.test')
  await visitor.check('verify-unknown')
})

test.each([1_200, 390])('nothing moves while a verdict arrives, %d px wide', async width => {
  const visitor = await set.open({ width })
  const { page } = visitor
  await visitor.go('/verify')
  await page.evaluate(`
    window.shifts = []
    new PerformanceObserver(list => {
      for (const { value, sources, hadRecentInput } of list.getEntries())
        window.shifts.push({ value, hadRecentInput, of: sources.map(({ node }) => node?.id || node?.nodeName) })
    }).observe({ type: 'layout-shift', buffered: true })`)
  const shifts = () => page.evaluate<{ readonly hadRecentInput: boolean }[]>('window.shifts')
  await verify(page, 'ann@slow.test')
  await verdictOf(page, 'ann@slow.test')
  await listed(page, 'ann@slow.test')
  // The space of the result is created by the submit itself, which the metric excludes.
  expect((await shifts()).filter(({ hadRecentInput }) => !hadRecentInput)).toEqual([])
  await page.evaluate('window.shifts = []')
  for (const address of [
    ...['nobody@polite.test', 'ann@gmail', 'ann..b@polite.test', 'ann@blocked.test'],
    ...['ann@slow.test', 'x@absent.test'],
  ]) {
    await verify(page, address)
    await verdictOf(page, address)
    await listed(page, address)
  }
  expect(await shifts()).toEqual([])
})

test('without JavaScript the result is a page', async () => {
  const visitor = await set.open({ scripts: false })
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, 'nobody@polite.test')
  await verdictOf(page, 'nobody@polite.test')
  expect(await page.locator('#verdict').textContent()).toContain('rejected_email')
})

test('an expired session leads to the sign-in page', async () => {
  const visitor = await set.open()
  const { page, context } = visitor
  await visitor.go('/verify')
  await context.clearCookies()
  await verify(page, 'ann@polite.test')
  await page.waitForURL('**/sign-in*')
})
