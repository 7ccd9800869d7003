import { describe, expect, test } from 'vitest'
import { COMMAND_LINE } from '../../src/audit.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { decryptHeaders } from '../../src/webhooks/custom-headers.ts'
import { WEBHOOKS_MAX } from '../../src/webhooks/endpoint.ts'
import { listWebhooks, type Webhook } from '../../src/webhooks/endpoint-store.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  rotateWebhookSecret,
  setWebhookActive,
  updateWebhook,
} from '../../src/webhooks/endpoints.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { addWebhook } from '../support/webhook-rows.ts'
import { zone } from '../support/zone.ts'

const INPUT = {
  accountId: 'acc_a',
  url: 'https://app.test/hook',
  description: null,
  active: true,
  events: ['batch.completed'] as const,
}
const OURS = { webhookId: 'wh_a', accountId: 'acc_a' }
const OF_ANYBODY = { webhookId: 'wh_a', accountId: null }
const OF_ANOTHER = { webhookId: 'wh_a', accountId: 'acc_b' }

async function createServices({ webhookAllowRanges = [] as string[] } = {}) {
  const [clock, random] = [fakeClock(), countedRandom()]
  const wakes: number[] = []
  return {
    clock,
    random,
    wakes,
    database: await tempDatabase({ clock }),
    origin: COMMAND_LINE,
    secretBox: createSecretBox('a secret of tests', random),
    resolver: zone({ 'app.test': { A: ['8.8.8.8'] }, 'inside.test': { A: ['10.0.0.7'] } }),
    settings: { webhookAllowRanges },
    deliveries: { wake: () => void wakes.push(clock.now()) },
  }
}

const refused = (code: string, facts: object) => expect.objectContaining({ code, facts })

describe('custom headers of a webhook', () => {
  const names = ({ headers }: Webhook) => Object.keys(headers)

  test('are stored encrypted', async () => {
    const services = await createServices()
    const headers = { Authorization: 'Bearer 4f9c21' }
    const { webhook } = await createWebhook(services, { ...INPUT, headers })
    expect(names(webhook)).toEqual(['Authorization'])
    const { headers: stored } = await services.database.db
      .selectFrom('webhook')
      .select('headers')
      .executeTakeFirstOrThrow()
    expect(stored).not.toContain('4f9c21')
    expect(decryptHeaders(services.secretBox, webhook.headers)).toEqual(headers)
  })

  test('are changed one by one, or replaced', async () => {
    const services = await createServices()
    const headers = { 'X-A': 'a', 'X-B': 'b', 'X-C': 'c' }
    const { webhook } = await createWebhook(services, { ...INPUT, headers })
    const target = { webhookId: webhook.id, accountId: null }
    const change = { headers: { 'x-a': 'new', 'X-B': null } }
    const changed = await updateWebhook(services, { ...target, change })
    expect(decryptHeaders(services.secretBox, changed.headers)).toEqual({
      'X-C': 'c',
      'x-a': 'new',
    })
    const renamed = await updateWebhook(services, { ...target, change: { description: 'x' } })
    expect(names(renamed)).toEqual(['X-C', 'x-a'])
    const replacement = { ...target, change: { headers: { 'X-D': 'd' } }, replacesHeaders: true }
    expect(names(await updateWebhook(services, replacement))).toEqual(['X-D'])
  })

  test('are not sent to another origin', async () => {
    const services = await createServices()
    const headers = { 'X-A': 'a' }
    const { webhook } = await createWebhook(services, { ...INPUT, headers })
    const target = { webhookId: webhook.id, accountId: null }
    const samePath = { url: 'https://app.test/other' }
    expect(names(await updateWebhook(services, { ...target, change: samePath }))).toEqual(['X-A'])
    const moved = { url: 'https://app.test:8443/hook', headers: { 'X-B': 'b' } }
    expect(names(await updateWebhook(services, { ...target, change: moved }))).toEqual(['X-B'])
  })
})

describe('creating a webhook', () => {
  test('returns its secret, which the database stores encrypted', async () => {
    const services = await createServices()
    const { webhook, secret } = await createWebhook(services, INPUT)
    expect(await getWebhook(services, { webhookId: webhook.id, accountId: null })).toEqual(webhook)
    expect(webhook.secret).not.toContain(secret)
    expect(services.secretBox.decrypt(webhook.secret)).toBe(secret)
  })

  test('stores a blank description as null', async () => {
    const services = await createServices()
    const { webhook } = await createWebhook(services, { ...INPUT, description: ' \n' })
    expect(webhook.description).toBeNull()
    const target = { webhookId: webhook.id, accountId: null }
    const ours = await updateWebhook(services, { ...target, change: { description: ' ours ' } })
    expect(ours.description).toBe('ours')
    const none = await updateWebhook(services, { ...target, change: { description: '' } })
    expect(none.description).toBeNull()
  })

  test('rejects a URL on a private network, and says that allowing its range would help', async () => {
    const url = 'https://inside.test/'
    await expect(createWebhook(await createServices(), { ...INPUT, url })).rejects.toThrow(
      refused('webhook_url_rejected', {
        url,
        fault: 'The name inside.test has an address that is not public.',
        field: 'url',
        isPrivate: true,
      }),
    )
    const services = await createServices({ webhookAllowRanges: ['10.0.0.0/8'] })
    expect((await createWebhook(services, { ...INPUT, url })).webhook.url).toBe(url)
    const insecure = { ...INPUT, url: 'http://app.test/' }
    await expect(createWebhook(services, insecure)).rejects.toThrow(
      refused('webhook_url_rejected', {
        field: 'url',
        url: insecure.url,
        fault: 'It must begin with https://.',
        isPrivate: false,
      }),
    )
  })

  test('rejects webhooks beyond the limit of the account, whatever others have', async () => {
    const services = await createServices()
    for (let n = 0; n < WEBHOOKS_MAX; n++) await addWebhook(services.database, { id: `wh_${n}` })
    await expect(createWebhook(services, INPUT)).rejects.toThrow(
      refused('webhook_limit_reached', { count: WEBHOOKS_MAX }),
    )
    await createWebhook(services, { ...INPUT, accountId: 'acc_b' })
  })

  test('writes nothing if the write before the commit fails', async () => {
    const services = await createServices()
    const failing = async () => {
      throw new Error('no room for the answer')
    }
    await expect(createWebhook(services, INPUT, failing)).rejects.toThrow('no room for the answer')
    expect(await listWebhooks(services.database, 'acc_a')).toEqual([])
  })
})

test('a webhook of another account is not found and not changed', async () => {
  const services = await createServices()
  const webhook = await addWebhook(services.database)
  const tried = [
    () => getWebhook(services, OF_ANOTHER),
    () => updateWebhook(services, { ...OF_ANOTHER, change: { description: 'mine' } }),
    () => setWebhookActive(services, { ...OF_ANOTHER, active: false }),
    () => rotateWebhookSecret(services, { ...OF_ANOTHER, graceMs: 0 }),
    () => deleteWebhook(services, OF_ANOTHER),
  ]
  for (const one of tried) {
    await expect(one()).rejects.toThrow(refused('webhook_not_found', { id: 'wh_a' }))
  }
  expect(await getWebhook(services, OURS)).toEqual(webhook)
})

describe('changing a webhook', () => {
  test('checks a new URL, and not the current one', async () => {
    const services = await createServices()
    const { webhook } = await createWebhook(services, INPUT)
    const target = { webhookId: webhook.id, accountId: 'acc_a' }
    services.resolver.set('app.test', null)
    await updateWebhook(services, { ...target, change: { url: INPUT.url } })
    const change = { url: 'https://inside.test/' }
    await expect(updateWebhook(services, { ...target, change })).rejects.toMatchObject({
      code: 'webhook_url_rejected',
    })
    expect(await getWebhook(services, target)).toEqual(webhook)
  })

  test('sends open deliveries once it is enabled, and not before', async () => {
    const services = await createServices()
    await addWebhook(services.database)
    expect(await setWebhookActive(services, { ...OF_ANYBODY, active: false })).toMatchObject({
      active: false,
    })
    expect(services.wakes).toEqual([])
    await setWebhookActive(services, { ...OF_ANYBODY, active: true })
    await updateWebhook(services, { ...OURS, change: { active: true } })
    expect(services.wakes).toHaveLength(2)
  })

  test('issues a new secret; the previous one signs until the end of the grace period', async () => {
    const services = await createServices()
    const { secret: before } = await addWebhook(services.database)
    const now = services.clock.now()
    const rotated = await rotateWebhookSecret(services, { ...OF_ANYBODY, graceMs: 5_000 })
    expect(services.secretBox.decrypt(rotated.webhook.secret)).toBe(rotated.secret)
    expect(rotated).toMatchObject({
      previousExpiresAt: now + 5_000,
      webhook: { previousSecret: { secret: before, until: now + 5_000 } },
    })
  })

  test('deletes it once', async () => {
    const services = await createServices()
    const webhook = await addWebhook(services.database)
    expect(await deleteWebhook(services, OURS)).toEqual(webhook)
    await expect(deleteWebhook(services, OURS)).rejects.toMatchObject({ code: 'webhook_not_found' })
  })
})
