import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { stage, type Visitor } from './browser.ts'
import { type FormSite, startFormSite } from './form-site.ts'

// The script for forms, on a page of another origin with a strict policy.

const set = stage()

let site: FormSite
const FORM_PATH = '/v1/verify/form'

beforeAll(async () => {
  site = await startFormSite(set)
})
afterAll(() => site.close())

type Sent = { readonly email: string; failed: boolean }

/** Opens the form with its requests and the events of its fields. */
async function openForm({ domain = 'localhost', isClockFake = false } = {}) {
  const visitor = await set.open({ key: null })
  const { page } = visitor
  if (isClockFake) await page.clock.install({ time: 0 })
  const sent: Sent[] = []
  const isCheck = (request: { url(): string; method(): string }) =>
    request.url().endsWith(FORM_PATH) && request.method() === 'POST'
  page.on('request', request => {
    if (isCheck(request)) sent.push({ email: request.postDataJSON().email, failed: false })
  })
  page.on('requestfailed', request => {
    const one = sent.find(({ email }) => isCheck(request) && email === request.postDataJSON().email)
    if (one !== undefined) one.failed = true
  })
  await visitor.go(site.url(domain))
  await page.evaluate(
    "results = []; document.addEventListener('ev:result', ({ detail }) => results.push(detail.class))",
  )
  const results = () => page.evaluate<string[]>('results')
  return { ...visitor, page, sent, results }
}

/** Enters an address and leaves the field. */
async function enter(page: Page, label: string, email: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(email)
  await page.keyboard.press('Tab')
}

const messageOf = (page: Page, id: string) => page.locator(`#${id} + .ev-message`)

async function submits(page: Page): Promise<boolean> {
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.waitForURL('**/done*', { timeout: 10_000 })
  return true
}

const ignoreFaults = ({ faults }: Visitor) => void faults.splice(0)

describe('a field of a form', () => {
  test('is checked when the visitor leaves it, and offers a suggestion that one click takes', async () => {
    const visitor = await openForm()
    const { page, sent, results } = visitor
    await page.getByLabel('Email', { exact: true }).focus()
    await page.keyboard.press('Tab')
    expect([sent, await messageOf(page, 'plain').textContent()]).toEqual([[], ''])
    await enter(page, 'Email', 'ann@gmial.com')
    const message = messageOf(page, 'plain')
    const suggestion = message.getByRole('button', { name: 'ann@gmail.com' })
    await suggestion.waitFor()
    expect(await message.textContent()).toBe('Did you mean ann@gmail.com?')
    expect(await message.getAttribute('aria-live')).toBe('polite')
    const field = page.getByLabel('Email', { exact: true })
    expect(await field.getAttribute('aria-describedby')).toBe(
      `why ${await message.getAttribute('id')}`,
    )
    expect(await results()).toEqual(['undeliverable'])
    await visitor.check('form')
    await suggestion.click()
    expect(await field.inputValue()).toBe('ann@gmail.com')
    await expect
      .poll(() => sent.map(({ email }) => email))
      .toEqual(['ann@gmial.com', 'ann@gmail.com'])
    expect(await message.textContent()).not.toContain('Did you mean')
    expect(await page.evaluate('document.activeElement.id')).toBe('plain')
    expect(visitor.faults).toEqual([])
  })

  test('is not checked again while it is unchanged, nor when it is empty', async () => {
    const visitor = await openForm()
    const { page, sent, results, faults } = visitor
    await enter(page, 'Email', 'ann@polite.test')
    await expect.poll(results).toEqual(['deliverable'])
    const field = page.getByLabel('Email', { exact: true })
    await field.focus()
    await page.keyboard.press('Tab')
    await enter(page, 'Email', '')
    await enter(page, 'Email', 'nobody@polite.test')
    await expect.poll(results).toEqual(['deliverable', 'undeliverable'])
    expect(sent.map(({ email }) => email)).toEqual(['ann@polite.test', 'nobody@polite.test'])
    expect(await messageOf(page, 'plain').textContent()).toContain('cannot receive mail')
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    await visitor.check('form-refused')
    // Without `data-ev="block"` the form is sent.
    expect(await submits(page)).toBe(true)
    expect(faults).toEqual([])
  })

  test('with data-ev="block" blocks the form only while its address is undeliverable', async () => {
    const { page, results, faults } = await openForm()
    await enter(page, 'Work email', 'nobody@polite.test')
    await expect.poll(results).toEqual(['undeliverable'])
    const validity = () =>
      page.evaluate<string>("document.querySelector('#strict').validationMessage")
    expect(await validity()).toContain('cannot receive mail')
    await page.getByRole('button', { name: 'Sign up' }).click()
    expect(await page.evaluate('document.activeElement.id')).toBe('strict')
    expect(page.url()).not.toContain('/done')
    await enter(page, 'Work email', 'ann@polite.test')
    await expect.poll(results).toEqual(['undeliverable', 'deliverable'])
    expect([await validity(), await messageOf(page, 'strict').textContent()]).toEqual(['', ''])
    expect(await submits(page)).toBe(true)
    expect(faults).toEqual([])
  })

  test('drops the request for an address that has changed', async () => {
    const { page, sent, results } = await openForm()
    await page.route(`**${FORM_PATH}`, async (route, request) => {
      if (request.postDataJSON()?.email !== 'slow@polite.test') await route.continue()
    })
    await enter(page, 'Email', 'slow@polite.test')
    await enter(page, 'Email', 'ann@polite.test')
    await expect.poll(results).toEqual(['deliverable'])
    expect(sent).toEqual([
      { email: 'slow@polite.test', failed: true },
      { email: 'ann@polite.test', failed: false },
    ])
  })
})

describe('a slow answer', () => {
  test('is shown when it arrives, and delays nothing', async () => {
    const { page, sent, results } = await openForm()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route(`**${FORM_PATH}`, async route => {
      await released
      await route.continue()
    })
    await enter(page, 'Email', 'nobody@polite.test')
    await expect.poll(() => sent.length).toBe(1)
    expect(await messageOf(page, 'plain').textContent()).toBe('')
    release()
    await expect.poll(results).toEqual(['undeliverable'])
    expect(await messageOf(page, 'plain').textContent()).toContain('cannot receive mail')
  })

  test('is not waited for after 8 seconds; leaving the field again sends the address again', async () => {
    const { page, sent, results } = await openForm({ isClockFake: true })
    await page.clock.pauseAt(DAY)
    await page.route(`**${FORM_PATH}`, () => {})
    await enter(page, 'Work email', 'nobody@polite.test')
    await expect.poll(() => sent.length).toBe(1)
    await page.clock.runFor(7_999)
    expect(sent[0]?.failed).toBe(false)
    await page.clock.runFor(1)
    await expect.poll(() => sent[0]?.failed).toBe(true)
    expect(await messageOf(page, 'strict').textContent()).toBe('')
    await page.unroute(`**${FORM_PATH}`)
    await page.getByLabel('Work email').focus()
    await page.keyboard.press('Tab')
    await expect.poll(results).toEqual(['undeliverable'])
  })
})

describe('a form is sent', () => {
  test.each([
    [
      'while the service cannot be reached',
      (page: Page) => page.route(`**${FORM_PATH}`, route => route.abort()),
    ],
    ['while the service does not answer', (page: Page) => page.route(`**${FORM_PATH}`, () => {})],
    ...[401, 403, 429, 500, 503].map(
      status =>
        [
          `if the service answers ${status}`,
          (page: Page) =>
            page.route(`**${FORM_PATH}`, route =>
              route.fulfill({ status, json: { success: false, error: 'x', code: 'x' } }),
            ),
        ] as const,
    ),
    [
      'if the answer is not JSON',
      (page: Page) => page.route(`**${FORM_PATH}`, route => route.fulfill({ body: '<p>' })),
    ],
  ] as const)('%s', async (_, prepare) => {
    const { page, sent, results } = await openForm()
    await prepare(page)
    await enter(page, 'Work email', 'nobody@polite.test')
    await expect.poll(() => sent.length).toBe(1)
    expect(await messageOf(page, 'strict').textContent()).toBe('')
    expect(await results()).toEqual([])
    expect(await submits(page)).toBe(true)
  })

  test('if the script cannot be loaded', async () => {
    const visitor = await set.open({ key: null })
    await visitor.page.route('**/form.js', route => route.abort())
    await visitor.go(site.url())
    await enter(visitor.page, 'Work email', 'nobody@polite.test')
    expect(await submits(visitor.page)).toBe(true)
  })

  test('on a site for which the key is not allowed', async () => {
    const visitor = await openForm({ domain: 'shop.example' })
    const { page, sent, results } = visitor
    await enter(page, 'Work email', 'nobody@polite.test')
    await expect.poll(() => visitor.faults.join()).toContain('blocked by CORS policy')
    expect([sent.length, await results()]).toEqual([1, []])
    ignoreFaults(visitor)
    expect(await submits(page)).toBe(true)
  })
})
