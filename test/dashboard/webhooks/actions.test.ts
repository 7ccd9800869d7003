import { describe, expect, test } from 'vitest'
import { HOUR } from '../../../src/platform/clock.ts'
import { SENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { answered } from '../../support/webhook-transport.ts'
import { EVIL, endpoint, HARMLESS, part } from './endpoint.ts'

type TestDashboard = Awaited<ReturnType<typeof endpoint>>

const webhookOf = async ({ json, id }: TestDashboard) =>
  (await json(`/v1/webhooks/${id}`)).data as Record<string, unknown>

describe('a webhook', () => {
  test('is updated from its form; other fields stay', async () => {
    const dashboard = await endpoint()
    const fields = { url: 'https://app.test/new', events: 'batch.failed', description: 'Moved' }
    const { status, headers } = await dashboard.post(dashboard.path, fields)
    expect(status).toBe(303)
    expect(headers.get('Location')).toBe(dashboard.path)
    expect(await webhookOf(dashboard)).toMatchObject({
      url: 'https://app.test/new',
      events: ['batch.failed'],
      description: 'Moved',
      active: true,
    })
    expect((await dashboard.get(dashboard.path)).text).toContain('Webhook updated.')
  })

  test('gets, changes and loses custom headers, whose values are not shown', async () => {
    const dashboard = await endpoint({ headers: { 'X-Old': 'old value', 'X-Kept': 'kept value' } })
    const fields = { url: 'https://app.test/hook', events: 'batch.failed', description: '' }
    const headers = ' Authorization: Bearer a:b \r\n\r\nX-More: more'
    await dashboard.post(dashboard.path, { ...fields, headers, removed: 'X-Old' })
    expect(await webhookOf(dashboard)).toMatchObject({
      header_names: ['X-Kept', 'Authorization', 'X-More'],
    })
    await dashboard.post(`${dashboard.path}/test`)
    expect(dashboard.receiver.sent[0]?.headers).toMatchObject({
      'X-Kept': 'kept value',
      Authorization: 'Bearer a:b',
      'X-More': 'more',
    })
    const { text } = await dashboard.get(dashboard.path)
    expect(text).toContain('name="removed" value="X-Kept"')
    expect(text).not.toMatch(/kept value|Bearer a:b/)
    const rejected = await dashboard.post(dashboard.path, { ...fields, headers: 'Host: x' })
    expect(rejected.status).toBe(400)
    expect(rejected.text).toContain('ev or HTTP sets this header itself.')
    const incomplete = await dashboard.post(dashboard.path, { ...fields, headers: 'X-No-Colon' })
    expect(incomplete.text).toContain('The value is empty.')
  })

  test('keeps its values and shows the form if the update is invalid', async () => {
    const dashboard = await endpoint()
    const fields = { url: `https://10.0.0.7/${EVIL}`, events: 'batch.failed', description: '' }
    const { status, text } = await dashboard.post(dashboard.path, fields)
    expect(status).toBe(400)
    expect(text).toContain('value="https://10.0.0.7/&lt;img')
    expect(text).not.toContain('<img')
    expect(await webhookOf(dashboard)).toMatchObject({ url: 'https://app.test/hook' })
  })

  test('is disabled and enabled, with an explanation', async () => {
    const dashboard = await endpoint()
    await dashboard.post(`${dashboard.path}/switch`, { active: 'false' })
    expect(await webhookOf(dashboard)).toMatchObject({ active: false })
    const off = await dashboard.get(dashboard.path)
    expect(off.text).toContain('Disabled manually')
    expect(off.text).toContain('>Enable<')
    await dashboard.post(`${dashboard.path}/switch`, { active: 'true' })
    expect(await webhookOf(dashboard)).toMatchObject({ active: true })
    expect((await dashboard.get(dashboard.path)).text).toContain('Events are sent as they happen.')
  })

  test('that ev disabled shows why, since when, and the fix', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    dashboard.receiver.answer(410)
    await dashboard.attempt({ disabledCode: 'gone' })
    const disabled_reason = `It answered ${EVIL}.`
    await dashboard.database.db.updateTable('webhook').set({ disabled_reason }).execute()
    const { text } = await dashboard.get(dashboard.path)
    expect(text).toContain(`It answered ${HARMLESS}.`)
    expect(text).not.toContain('<img')
    expect(text).toMatch(/It has been failing since\s*<time/)
    expect(text).toContain('Fix the receiver, re-enable the webhook and test it')
    expect(text).toContain('The webhook is disabled. Enable it first.')
  })

  test('gets a new secret, shown once; the old one stays valid during the grace period', async () => {
    const dashboard = await endpoint()
    const { text, headers } = await dashboard.post(`${dashboard.path}/secret`, { grace: '3600' })
    const secret = /data-copy>(whsec_\w+)</.exec(text)?.[1] ?? ''
    expect(secret).not.toBe(dashboard.secret)
    expect(headers.get('Cache-Control')).toBe('no-store')
    expect(text).toContain('stays valid until <time datetime="2026-06-01T13:00:00.000Z"')
    expect(await webhookOf(dashboard)).toMatchObject({
      secret_hint: secret.slice(-4),
      previous_secret_expires_at: '2026-06-01T13:00:00.000Z',
    })
    const shown = (await dashboard.get(dashboard.path)).text
    expect(shown).not.toContain(secret)
    expect(shown).toContain(`…${secret.slice(-4)}`)
  })

  test('whose secret is compromised gets a new one immediately', async () => {
    const dashboard = await endpoint()
    const { text } = await dashboard.post(`${dashboard.path}/secret`, { grace: '0' })
    expect(text).toContain('data-copy>whsec_')
    expect(text).not.toContain('stays valid until')
    expect(await webhookOf(dashboard)).not.toHaveProperty('previous_secret_expires_at')
  })

  test('resends failed deliveries since a UTC time, and reports how many', async () => {
    const dashboard = await endpoint()
    dashboard.receiver.answer(500)
    for (let n = 0; n < 3; n++) {
      await dashboard.happen()
      await dashboard.attempt({ last: true })
      await dashboard.clock.advance(HOUR)
    }
    const note = async (since: string) => {
      expect((await dashboard.post(`${dashboard.path}/recover`, { since })).status).toBe(303)
      return /role="status">.*?<p>([^<]*(?:esen)[^<]*)/.exec(
        (await dashboard.get(dashboard.path)).text,
      )?.[1]
    }
    expect(await note('2026-06-01T14:30')).toContain('No deliveries have failed since then')
    expect(await note('2026-06-01T13:00')).toBe('Resending 2 deliveries.')
    expect(await note('2026-06-01T12:00')).toBe('Resending 1 delivery.')
  })

  test('resends nothing for an invalid time', async () => {
    const dashboard = await endpoint()
    const { status, text } = await dashboard.post(`${dashboard.path}/recover`, { since: EVIL })
    expect(status).toBe(400)
    expect(text).toContain(`&quot;${HARMLESS}&quot; is not a valid time.`)
  })

  test('is deleted', async () => {
    const dashboard = await endpoint()
    const { headers } = await dashboard.post(`${dashboard.path}/delete`)
    expect(headers.get('Location')).toBe('/webhooks')
    const { text } = await dashboard.get('/webhooks')
    expect(text).toContain('Webhook deleted.')
    expect(text).toContain('No webhooks yet')
    expect((await dashboard.get(dashboard.path)).status).toBe(404)
  })
})

describe('a test event', () => {
  test('is sent at once, and its result is shown, without JavaScript too', async () => {
    const dashboard = await endpoint()
    dashboard.receiver.answer(answered(204, {}, ''))
    const { status, headers } = await dashboard.post(`${dashboard.path}/test`)
    expect(status).toBe(303)
    const { text } = await dashboard.get(headers.get('Location') ?? '')
    expect(text).toContain('Responded 204 after 84 ms.')
    expect(text).toContain('(empty body)')
    expect(dashboard.receiver.sent).toHaveLength(1)
  })

  test('can be an example of the chosen event', async () => {
    const dashboard = await endpoint()
    const { text } = await dashboard.get(dashboard.path)
    expect(text.match(/<option>/g)).toHaveLength(SENT_KINDS.length)
    await dashboard.post(`${dashboard.path}/test`, { event: 'quota.exceeded' })
    expect(JSON.parse(dashboard.receiver.sent[0]?.body ?? '')).toMatchObject({
      event: 'quota.exceeded',
      sandbox: true,
    })
  })

  test('is rendered as a fragment for htmx, and refreshes the log', async () => {
    const dashboard = await endpoint()
    dashboard.receiver.answer(answered(500, {}, `no ${EVIL}`))
    const { status, text, headers } = await dashboard.post(
      `${dashboard.path}/test`,
      {},
      part('tested'),
    )
    expect(status).toBe(200)
    expect(text).not.toContain('<html')
    expect(text).toContain('Responded 500 after 84 ms. It answered 500. Only a status from 200')
    expect(text).toContain(`no ${HARMLESS}`)
    expect(text).not.toContain('<img')
    const log = await dashboard.get(dashboard.path, part('log'))
    expect(log.text).toContain(`${headers.get('HX-Trigger')} from:body`)
  })

  test('without a response shows so', async () => {
    const dashboard = await endpoint()
    dashboard.receiver.answer({ fault: 'Nobody answered.', durationMs: 30_000 })
    const { text } = await dashboard.post(`${dashboard.path}/test`, {}, part('tested'))
    expect(text).toContain('No response after 30 s. Nobody answered.')
  })
})
