import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EvClient, verifyWebhook } from '../../../src/client/client.ts'
import { testAuthority } from '../../support/certificate.ts'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import { stage } from './browser.ts'

const ALLOWED = ['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem']

const set = stage({
  args: ALLOWED,
  scenario: {
    mailboxes: ['user*'],
    domains: {
      'polite.test': { mx: [[10, 'mx.polite.test']] },
      'hook.example': { a: ['127.0.0.1'] },
    },
    hosts: { 'mx.polite.test': { behavior: 'polite' } },
  },
})
writeFileSync(join(set.home, 'ca.pem'), testAuthority().cert)

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.close())

const EVIL = '<img src=x onerror=alert(1)>'

test('a webhook is created, tested, fails with an alert on the overview, and is resent', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/webhooks')
  await visitor.check('webhooks-none')
  await page.getByRole('link', { name: 'Event types' }).click()
  await page.getByRole('heading', { name: 'quota.exceeded' }).waitFor()
  await visitor.check('event-types')
  await page.goBack()

  await page.getByRole('link', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill(receiver.url)
  await page.getByRole('checkbox', { name: 'batch.completed' }).uncheck()
  await page.getByRole('checkbox', { name: 'verification.completed' }).check()
  await page.getByLabel('Description').fill(`Of billing ${EVIL}`)
  await visitor.check('webhook-new')
  await page.getByRole('button', { name: 'Create webhook' }).click()
  const secret = (await page.locator('code.copyable').textContent()) ?? ''
  expect(secret).toMatch(/^whsec_/)
  // No screenshot of a secret.
  await page.getByRole('link', { name: 'I have saved it' }).click()

  receiver.answer({ status: 200, body: `thanks ${EVIL}` })
  await page.getByRole('button', { name: 'Send test event' }).click()
  await page.getByText('Responded 200').waitFor()
  await page.getByText(`thanks ${EVIL}`).waitFor()
  await page.getByRole('row', { name: 'webhook.test' }).waitFor()
  const [request] = receiver.received
  const event = await verifyWebhook(request?.body ?? '', request?.headers ?? {}, secret)
  expect(event.event).toBe('webhook.test')

  receiver.answer({ status: 500, headers: { 'x-why': EVIL }, body: `not now ${EVIL}` })
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  await client.verify.later('user1@polite.test')
  // The page reports the failure without user action, as the log polls.
  await expect.poll(() => receiver.received.length).toBe(2)
  await visitor.go('/overview')
  await page.locator('.items li', { hasText: 'Webhook failing' }).getByRole('link').click()
  await page.locator('#log').getByText('Retry scheduled').waitFor()
  await visitor.check('webhook')
  await page.getByRole('link', { name: 'verification.completed' }).click()
  await page.getByText(`not now ${EVIL}`).waitFor()
  await page.getByText(`x-why: ${EVIL}`).waitFor()
  await visitor.check('delivery')

  receiver.answer(204)
  await page.getByRole('button', { name: 'Resend' }).click()
  await page.getByText('Resending with six new attempts').waitFor()
  // The page polls every five seconds.
  await page.locator('#course').getByText('Delivered', { exact: true }).waitFor()
  await page.getByText('Attempt 2: Responded 204').waitFor()
  expect(receiver.received).toHaveLength(3)
  expect(receiver.received[2]?.body).toEqual(receiver.received[1]?.body)
  await visitor.go('/overview')
  expect(await page.getByText('Webhook failing').count()).toBe(0)

  await visitor.go('/webhooks')
  await visitor.check('webhooks')
  expect(visitor.faults).toEqual([])
})

test('the log is filtered without a page load, and the filter survives a reload', async () => {
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  const { id } = await client.webhooks.create({ url: receiver.url, events: ['batch.failed'] })
  receiver.answer(204)
  await client.webhooks.test(id)
  receiver.answer(500)
  await client.webhooks.test(id)
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go(`/webhooks/${id}`)
  const rows = page.locator('#log tbody tr')
  expect(await rows.count()).toBe(2)
  await page.evaluate('window.mark = true')
  await page.getByLabel('Status').selectOption('failed')
  await expect.poll(() => rows.count()).toBe(1)
  expect(await page.evaluate('window.mark')).toBe(true)
  await expect.poll(() => page.url()).toContain('status=failed')
  // Later fragments show local times too.
  expect(await rows.locator('time').first().textContent()).not.toContain('UTC')
  await page.reload()
  expect(await rows.count()).toBe(1)
  expect(await page.getByLabel('Status').inputValue()).toBe('failed')
  expect(visitor.faults).toEqual([])
})

test('without JavaScript a webhook can be tested, filtered, rotated and deleted', async () => {
  const client = new EvClient({ apiKey: set.key, baseUrl: set.url })
  const { id } = await client.webhooks.create({ url: receiver.url, events: ['batch.failed'] })
  receiver.answer({ status: 500, body: 'no luck' })
  const { context } = await set.open()
  const bare = await context.browser()?.newContext({
    baseURL: set.url,
    javaScriptEnabled: false,
    storageState: await context.storageState(),
  })
  const page = await bare?.newPage()
  if (bare === undefined || page === undefined) throw new Error('there is no browser')
  await page.goto(`/webhooks/${id}`)
  await page.getByRole('button', { name: 'Send test event' }).click()
  await page.getByText('no luck').waitFor()
  await page.getByLabel('Status').selectOption('delivered')
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('No matching deliveries.').waitFor()
  await page.getByRole('button', { name: 'Rotate secret' }).click()
  expect(await page.locator('code.copyable').textContent()).toMatch(/^whsec_/)
  await page.goto(`/webhooks/${id}`)
  await page.getByText('Delete', { exact: true }).click()
  await page.getByRole('button', { name: 'Delete webhook' }).click()
  await page.getByText('Webhook deleted.').waitFor()
  await bare.close()
})
