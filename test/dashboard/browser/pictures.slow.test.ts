import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import type { Visitor } from './browser.ts'
import { clientOf, DEMO_LIST, demoStage, seedUsage } from './demo.ts'
import { startFormSite } from './form-site.ts'

// Renews the pictures in docs/screenshots/. Other tests check the same pages.

const isAsked = process.env.EV_SCREENSHOTS === '1'
if (!isAsked) console.log('Skipped: EV_SCREENSHOTS=1 renews docs/screenshots/')

/** The rest of a long list adds nothing to the screenshot. */
const ROWS_BEGIN = 1_600

/** The first operation of a page of the reference ends below. */
const DOCS_END = 1_000
/** The sign-up form has this height. */
const FORM_ENDS = 480
const TOPIC = 'arn:aws:sns:us-east-1:123456789012:ses-feedback'

describe.runIf(isAsked)('the pictures of the dashboard', () => {
  const set = demoStage()

  let receiver: Receiver
  let visitor: Visitor
  beforeAll(async () => {
    receiver = await startReceiver()
    visitor = await set.open()
    await seedUsage(set)
  })
  afterAll(() => receiver.close())

  const client = () => clientOf(set)

  const picture = (name: string, heightMax?: number) => visitor.picture(name, heightMax)

  test('verify', async () => {
    const { page } = visitor
    await visitor.go('/verify')
    await page.getByLabel('Address').fill('anna.moreau@northwind-tea.example')
    await page.keyboard.press('Enter')
    await page.locator('#verdict.is-deliverable').waitFor()
    await page.locator('#recent table').waitFor()
    await picture('verify')
  })

  test('a list before its start and after its end', async () => {
    const { page } = visitor
    await visitor.go('/lists/new')
    await page.getByLabel('File').setInputFiles(DEMO_LIST)
    await page.getByLabel('Name').fill('Newsletter, autumn')
    await page.getByRole('button', { name: 'Start' }).waitFor()
    await picture('draft')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.waitForURL(/\/lists\/job_/)
    await page.locator('#live-reasons, .charts').getByText('Accepted').first().waitFor()
    await picture('list-live', ROWS_BEGIN)
    await page.getByRole('heading', { name: 'By provider' }).waitFor()
    await picture('list', ROWS_BEGIN)
  })

  test('keys', async () => {
    await client().keys.create({
      name: 'Sign-up form',
      scopes: ['verify:single'],
      allowed_domains: ['shop.example'],
    })
    await client().keys.create({
      name: 'CRM, nightly',
      scopes: ['verify:bulk', 'jobs:read', 'jobs:write'],
      allowed_ips: ['203.0.113.0/24'],
    })
    await visitor.go('/keys')
    await picture('keys')
  })

  test('webhooks', async () => {
    const { page } = visitor
    const { id } = await client().webhooks.create({
      url: receiver.url,
      events: ['batch.completed', 'verification.completed'],
      description: 'Billing',
    })
    receiver.answer({ status: 200, body: 'thank you' })
    await client().webhooks.test(id)
    receiver.answer({ status: 500, body: 'not now' })
    await client().verify.later('ben.holm@atelier-noor.test')
    await expect.poll(() => receiver.received.length).toBe(2)
    await visitor.go(`/webhooks/${id}`)
    await page.locator('#log').getByText('Retry scheduled').waitFor()
    await picture('webhook')
    await page.getByRole('link', { name: 'verification.completed' }).click()
    await page.getByText('not now').waitFor()
    await picture('delivery')
  })

  test('a feedback source', async () => {
    const { page } = visitor
    await client().feedback.sources.create({ provider: 'ses', key: TOPIC })
    await visitor.go('/feedback/sources')
    await page.getByRole('link', { name: 'Amazon SES' }).click()
    await page.getByText('No request of Amazon SES has arrived yet.').waitFor()
    await picture('source')
  })

  test('a form on a website', async () => {
    const site = await startFormSite(set)
    const desktop = await set.open({ key: null, width: 720 })
    await desktop.go(site.url())
    await desktop.page.getByLabel('Email', { exact: true }).fill('anna.moreau@gmial.com')
    await desktop.page.keyboard.press('Tab')
    await desktop.page.getByRole('button', { name: 'anna.moreau@gmail.com' }).waitFor()
    await desktop.picture('form-suggestion', FORM_ENDS)
    const phone = await set.open({ key: null, width: 360 })
    await phone.go(site.url())
    await phone.page.getByLabel('Work email').fill('nobody@northwind-tea.example')
    await phone.page.keyboard.press('Tab')
    await phone.page.getByText('This address cannot receive mail.').waitFor()
    await phone.picture('form-refused', FORM_ENDS)
    site.close()
  })

  test('overview', async () => {
    await visitor.go('/overview')
    await visitor.page.locator('.chart canvas').waitFor()
    await picture('overview')
  })

  test('usage', async () => {
    await visitor.go('/usage?period=month')
    await visitor.page.locator('.chart canvas').waitFor()
    await picture('usage')
  })

  test('API reference', async () => {
    await visitor.go('/docs/reference/verification')
    await picture('docs', DOCS_END)
  })

  test('health', async () => {
    await visitor.go('/doctor')
    await visitor.page.getByText('Checked at').waitFor()
    await picture('health')
  })
})
