import { describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../../src/client/client.ts'
import { EVENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

const zone = { 'app.test': { A: ['8.8.8.8'] } }
const FIELDS = {
  url: 'https://app.test/hook',
  events: ['batch.completed', 'quota.warning'],
  description: 'Of billing',
  active: 'true',
}

const shownSecret = (page: string) => /data-copy>(whsec_\w+)</.exec(page)?.[1] ?? ''
const numberOf = (page: string) => /name="_once" value="([^"]+)"/.exec(page)?.[1] ?? ''

describe('a new webhook', () => {
  test('has a form with every event and its description', async () => {
    const { text } = await (await createTestDashboard()).get('/webhooks/new')
    const shown = [...text.matchAll(/name="events" value="([^"]+)"/g)].map(([, kind]) => kind)
    expect(shown).toEqual([...EVENT_KINDS])
    expect(text).toContain('A list could not be completed.')
    expect(text).toMatch(/value="batch.completed" checked/)
  })

  test('is created from the form, and its secret is shown once', async () => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    const answer = await dashboard.post('/webhooks', FIELDS)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
    const secret = shownSecret(answer.text)
    expect(secret).toMatch(/^whsec_\w{32}$/)
    expect(answer.text).toContain('verifyWebhook(request.body, request.headers, secret)')

    const { data } = (await dashboard.json('/v1/webhooks')) as {
      data: { webhooks: { id: string }[] }
    }
    expect(data.webhooks).toMatchObject([
      {
        url: FIELDS.url,
        events: FIELDS.events,
        description: 'Of billing',
        active: true,
        secret_hint: secret.slice(-4),
      },
    ])
    const elsewhere = [
      ...(await Promise.all(
        ['/webhooks', `/webhooks/${data.webhooks[0]?.id}`].map(path => dashboard.get(path)),
      )),
    ].map(({ text }) => text)
    const kept = [
      JSON.stringify(dashboard.lines),
      JSON.stringify([...dashboard.cookies]),
      ...elsewhere,
    ]
    for (const text of kept) expect(text).not.toContain(secret)
  })

  test('has the secret with which its receiver verifies signatures', async () => {
    const dashboard = await endpoint()
    const { text } = await dashboard.post('/webhooks', { ...FIELDS, url: 'https://app.test/other' })
    const { data } = (await dashboard.json('/v1/webhooks')) as {
      data: { webhooks: { id: string }[] }
    }
    await dashboard.post(`/webhooks/${data.webhooks[1]?.id}/test`)
    const [{ body = '', headers = {} } = {}] = dashboard.receiver.sent
    const now = () => dashboard.clock.now()
    const event = await verifyWebhook(body, headers, shownSecret(text), { now })
    expect(event.event).toBe('webhook.test')
  })

  test('may be disabled at first and have no description', async () => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    await dashboard.post('/webhooks', { url: FIELDS.url, events: 'batch.failed' })
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({
      webhooks: [{ active: false, description: null, events: ['batch.failed'] }],
    })
  })

  test.each([
    [
      'has a URL that is not allowed',
      { url: 'http://app.test/hook' },
      'It must begin with https://.',
    ],
    ['has a private URL', { url: 'https://10.0.0.7/hook' }, 'The address 10.0.0.7 is not public.'],
    ['has no events', { events: [] }, 'it takes batch.completed'],
    ['has an unknown event', { events: ['x.y'] }, 'x.y'],
  ])('that %s is rejected with an error above the form', async (_, wrong, sentence) => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    const fields = { ...FIELDS, description: EVIL, ...wrong }
    const { status, text } = await dashboard.post('/webhooks', fields)
    expect(status).toBe(400)
    expect(/role="alert">.*?<p>(.*?)<\/p>/s.exec(text)?.[1]).toContain(sentence)
    expect(text).toContain(`value="${fields.url}"`)
    expect(text).toContain(`value="${HARMLESS}"`)
    expect(text).not.toContain('<img')
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({ total: 0 })
  })

  test('is created once by a form that is sent twice, with the same secret', async () => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    const _once = numberOf((await dashboard.get('/webhooks/new')).text)
    const first = await dashboard.post('/webhooks', { ...FIELDS, _once })
    const second = await dashboard.post('/webhooks', { ...FIELDS, _once })
    expect(shownSecret(first.text)).toMatch(/^whsec_/)
    expect(shownSecret(second.text)).toBe(shownSecret(first.text))
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({ total: 1 })
  })

  test('is created by a changed form only after it is sent again', async () => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    const _once = numberOf((await dashboard.get('/webhooks/new')).text)
    await dashboard.post('/webhooks', { ...FIELDS, _once })
    const changed = { ...FIELDS, url: 'https://app.test/other' }
    const refused = await dashboard.post('/webhooks', { ...changed, _once })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('This form was already sent with different content')
    const next = numberOf(refused.text)
    expect(next).not.toBe(_once)
    expect((await dashboard.post('/webhooks', { ...changed, _once: next })).status).toBe(200)
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({ total: 2 })
  })

  test('is not created by a form of another site', async () => {
    const dashboard = await createTestDashboard({ engine: { zone } })
    const wrong = await dashboard.post('/webhooks', { ...FIELDS, _csrf: 'guessed' })
    expect(wrong.status).toBe(403)
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({ total: 0 })
  })
})
