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
  row(page, 'verdict').getByText(address, { exact: true }).waitFor()

/** Waits until an address is in the recent checks. */
const listed = (page: Page, address: string) =>
  page.locator('#recent td').getByText(address, { exact: true }).first().waitFor()

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
  await row(page, 'dialogue').getByText('C: EHLO').waitFor()
  expect(await row(page, 'verdict').textContent()).toContain('The result and what to do')
  await verdictOf(page, 'ann@slow.test')
  const seen = await page.evaluate<string[]>('window.seen')
  expect(seen).toContain('ok ok ok now -')
  expect(seen.at(-1)).toBe('ok ok ok ok ok')
  expect(page.url()).toBe(`${set.url}/verify`)
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('title-verdict')
  expect(await page.evaluate('window.spoken')).toEqual([
    'Verifying ann@slow.test.',
    'ann@slow.test is deliverable. The mail server accepts mail for this address.',
  ])
  await listed(page, 'ann@slow.test')
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
  await row(page, 'verdict').getByRole('button', { name: 'Verify suggestion' }).click()
  await verdictOf(page, 'ann@gmail.com')
  expect(await page.getByLabel('Email address').inputValue()).toBe('ann@gmail.com')
  await page.getByLabel('Sandbox:').check()
  await verify(page, 'greylisted@polite.test')
  await row(page, 'verdict').getByText('simulated').waitFor()
  await page.getByRole('button', { name: 'Verify ann@polite.test again' }).first().click()
  await verdictOf(page, 'ann@polite.test')
  expect(await row(page, 'servers').textContent()).toContain('the cached answer is used')
  await page.getByRole('button', { name: 'Verify again now' }).click()
  await row(page, 'verdict').getByText('mail server', { exact: true }).waitFor()
})

test('markup in an address and in a reply is rendered as text', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, `"${EVIL}"@evil.test`)
  await row(page, 'verdict').getByText('rejected_email').waitFor()
  expect(await row(page, 'dialogue').textContent()).toContain(`C: RCPT TO:<"${EVIL}"@evil.test>`)
  expect(await row(page, 'dialogue').textContent()).toContain(`${EVIL}<script>alert(2)</script>`)
  await verify(page, EVIL)
  await row(page, 'verdict').getByText('invalid_email').waitFor()
  await listed(page, `"${EVIL}"@evil.test`)
  expect(await page.locator('main img, main script').count()).toBe(0)
  expect(visitor.faults).toEqual([])
})

test('a new verification replaces the previous one and does not steal the focus', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, 'bob.1@slow.test')
  await row(page, 'dialogue').getByText('C: EHLO').waitFor()
  await verify(page, 'ann@blocked.test')
  await page.getByLabel('Ignore cached results').focus()
  await row(page, 'verdict').getByText('probe_blocked').waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('again')
  await listed(page, 'ann@blocked.test')
  expect(await row(page, 'verdict').textContent()).not.toContain('slow.test')
  await visitor.check('verify-unknown')
})

test('without JavaScript the result is a page', async () => {
  const visitor = await set.open({ scripts: false })
  const { page } = visitor
  await visitor.go('/verify')
  await verify(page, 'nobody@polite.test')
  await verdictOf(page, 'nobody@polite.test')
  expect(await row(page, 'verdict').textContent()).toContain('rejected_email')
})

test('an expired session leads to the sign-in page', async () => {
  const visitor = await set.open()
  const { page, context } = visitor
  await visitor.go('/verify')
  await context.clearCookies()
  await verify(page, 'ann@polite.test')
  await page.waitForURL('**/sign-in*')
})
