import { describe, expect, test } from 'vitest'
import { HOUR } from '../../../src/platform/clock.ts'
import { answered } from '../../support/webhook-transport.ts'
import { EVIL, endpoint, HARMLESS, part } from './endpoint.ts'

type Home = Awaited<ReturnType<typeof endpoint>>

const webhookOf = async ({ json, id }: Home) =>
  (await json(`/v1/webhooks/${id}`)).data as Record<string, unknown>

describe('a webhook', () => {
  test('is changed by its form; what the form does not have stays', async () => {
    const home = await endpoint()
    const fields = { url: 'https://app.test/new', events: 'batch.failed', description: 'Moved' }
    const { status, headers } = await home.post(home.path, fields)
    expect(status).toBe(303)
    expect(headers.get('Location')).toBe(home.path)
    expect(await webhookOf(home)).toMatchObject({
      ...{ url: 'https://app.test/new', events: ['batch.failed'], description: 'Moved' },
      active: true,
    })
    expect((await home.get(home.path)).text).toContain('Webhook updated.')
  })

  test('that is changed to what may not be stays as it is, and the form has what was written', async () => {
    const home = await endpoint()
    const fields = { url: `https://10.0.0.7/${EVIL}`, events: 'batch.failed', description: '' }
    const { status, text } = await home.post(home.path, fields)
    expect(status).toBe(400)
    expect(text).toContain('value="https://10.0.0.7/&lt;img')
    expect(text).not.toContain('<img')
    expect(await webhookOf(home)).toMatchObject({ url: 'https://app.test/hook' })
  })

  test('is switched off and on, and says what that means', async () => {
    const home = await endpoint()
    await home.post(`${home.path}/switch`, { active: 'false' })
    expect(await webhookOf(home)).toMatchObject({ active: false })
    const off = await home.get(home.path)
    expect(off.text).toContain('Disabled manually')
    expect(off.text).toContain('>Enable<')
    await home.post(`${home.path}/switch`, { active: 'true' })
    expect(await webhookOf(home)).toMatchObject({ active: true })
    expect((await home.get(home.path)).text).toContain('Events are sent as they happen.')
  })

  test('that ev switched off says why, since when it failed, and what to do', async () => {
    const home = await endpoint()
    await home.happen()
    home.receiver.answer(410)
    await home.attempt({ disabledCode: 'gone' })
    const disabled_reason = `It answered ${EVIL}.`
    await home.database.db.updateTable('webhook').set({ disabled_reason }).execute()
    const { text } = await home.get(home.path)
    expect(text).toContain(`It answered ${HARMLESS}.`)
    expect(text).not.toContain('<img')
    expect(text).toMatch(/It has been failing since\s*<time/)
    expect(text).toContain('Fix the receiver, enable the webhook again')
    expect(text).toContain('The webhook is disabled. Enable it first.')
  })

  test('gets another secret, which is shown once; the one before holds for as long as was chosen', async () => {
    const home = await endpoint()
    const { text, headers } = await home.post(`${home.path}/secret`, { grace: '3600' })
    const secret = /data-copy>(whsec_\w+)</.exec(text)?.[1] ?? ''
    expect(secret).not.toBe(home.secret)
    expect(headers.get('Cache-Control')).toBe('no-store')
    expect(text).toContain('stays valid until <time datetime="2026-06-01T13:00:00.000Z"')
    expect(await webhookOf(home)).toMatchObject({
      ...{ secret_hint: secret.slice(-4), previous_secret_expires_at: '2026-06-01T13:00:00.000Z' },
    })
    const shown = (await home.get(home.path)).text
    expect(shown).not.toContain(secret)
    expect(shown).toContain(`…${secret.slice(-4)}`)
  })

  test('whose secret is known to others gets another one at once', async () => {
    const home = await endpoint()
    const { text } = await home.post(`${home.path}/secret`, { grace: '0' })
    expect(text).toContain('data-copy>whsec_')
    expect(text).not.toContain('stays valid until')
    expect(await webhookOf(home)).not.toHaveProperty('previous_secret_expires_at')
  })

  test('is sent again what was given up since a time, in UTC, and says how much that is', async () => {
    const home = await endpoint()
    home.receiver.answer(500)
    for (let n = 0; n < 3; n++) {
      await home.happen()
      await home.attempt({ last: true })
      await home.clock.advance(HOUR)
    }
    const note = async (since: string) => {
      expect((await home.post(`${home.path}/recover`, { since })).status).toBe(303)
      return /role="status"><p>([^<]*sent again[^<]*)/.exec((await home.get(home.path)).text)?.[1]
    }
    expect(await note('2026-06-01T14:30')).toContain('No deliveries have failed since then')
    expect(await note('2026-06-01T13:00')).toBe('Resending 2 deliveries.')
    expect(await note('2026-06-01T12:00')).toBe('Resending 1 delivery.')
  })

  test('is sent nothing again since a time that is none', async () => {
    const home = await endpoint()
    const { status, text } = await home.post(`${home.path}/recover`, { since: EVIL })
    expect(status).toBe(400)
    expect(text).toContain(`“${HARMLESS}” is not a valid time.`)
  })

  test('is deleted, and is gone', async () => {
    const home = await endpoint()
    const { headers } = await home.post(`${home.path}/delete`)
    expect(headers.get('Location')).toBe('/webhooks')
    const { text } = await home.get('/webhooks')
    expect(text).toContain('Webhook deleted.')
    expect(text).toContain('No webhooks yet')
    expect((await home.get(home.path)).status).toBe(404)
  })
})

describe('a test event', () => {
  test('is sent at once, and what came of it stands on the page, without scripts too', async () => {
    const home = await endpoint()
    home.receiver.answer(answered(204, {}, ''))
    const { status, headers } = await home.post(`${home.path}/test`)
    expect(status).toBe(303)
    const { text } = await home.get(headers.get('Location') ?? '')
    expect(text).toContain('Responded 204 after 84 ms.')
    expect(text).toContain('(empty body)')
    expect(home.receiver.sent).toHaveLength(1)
  })

  test('is told by a part of the page where htmx asks, and the log hears of it', async () => {
    const home = await endpoint()
    home.receiver.answer(answered(500, {}, `no ${EVIL}`))
    const { status, text, headers } = await home.post(`${home.path}/test`, {}, part('tested'))
    expect(status).toBe(200)
    expect(text).not.toContain('<html')
    expect(text).toContain('Responded 500 after 84 ms. It answered 500: only an answer from 200')
    expect(text).toContain(`no ${HARMLESS}`)
    expect(text).not.toContain('<img')
    const log = await home.get(home.path, part('log'))
    expect(log.text).toContain(`${headers.get('HX-Trigger')} from:body`)
  })

  test('that nobody answered says so', async () => {
    const home = await endpoint()
    home.receiver.answer({ fault: 'Nobody answered.', durationMs: 30_000 })
    const { text } = await home.post(`${home.path}/test`, {}, part('tested'))
    expect(text).toContain('No response after 30 s. Nobody answered.')
  })
})
