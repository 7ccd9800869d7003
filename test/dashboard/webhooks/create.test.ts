import { describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../../src/client/client.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

const zone = { 'app.test': { A: ['8.8.8.8'] } }
const FIELDS = {
  ...{ url: 'https://app.test/hook', events: ['batch.completed', 'quota.warning'] },
  ...{ description: 'Of billing', active: 'true' },
}

const shownSecret = (page: string) => /data-copy>(whsec_\w+)</.exec(page)?.[1] ?? ''
const numberOf = (page: string) => /name="_once" value="([^"]+)"/.exec(page)?.[1] ?? ''

describe('a new webhook', () => {
  test('is asked for with every event that there is, and a sentence for each', async () => {
    const { text } = await (await createTestDashboard()).get('/webhooks/new')
    expect(text.match(/name="events"/g)).toHaveLength(5)
    expect(text).toContain('A list could not be completed.')
    expect(text).toMatch(/value="batch.completed" checked/)
  })

  test('is made as the form says, and its secret is shown once, nowhere but in that answer', async () => {
    const home = await createTestDashboard({ engine: { zone } })
    const answer = await home.post('/webhooks', FIELDS)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
    const secret = shownSecret(answer.text)
    expect(secret).toMatch(/^whsec_\w{32}$/)
    expect(answer.text).toContain('verifyWebhook(request.body, request.headers, secret)')

    const { data } = (await home.json('/v1/webhooks')) as { data: { webhooks: { id: string }[] } }
    expect(data.webhooks).toMatchObject([
      {
        ...{ url: FIELDS.url, events: FIELDS.events, description: 'Of billing', active: true },
        secret_hint: secret.slice(-4),
      },
    ])
    const elsewhere = [
      ...(await Promise.all(
        ['/webhooks', `/webhooks/${data.webhooks[0]?.id}`].map(path => home.get(path)),
      )),
    ].map(({ text }) => text)
    const kept = [JSON.stringify(home.lines), JSON.stringify([...home.cookies]), ...elsewhere]
    for (const text of kept) expect(text).not.toContain(secret)
  })

  test('has the secret by which its receiver checks what is sent', async () => {
    const home = await endpoint()
    const { text } = await home.post('/webhooks', { ...FIELDS, url: 'https://app.test/other' })
    const { data } = (await home.json('/v1/webhooks')) as { data: { webhooks: { id: string }[] } }
    await home.post(`/webhooks/${data.webhooks[1]?.id}/test`)
    const [{ body = '', headers = {} } = {}] = home.receiver.sent
    const now = () => home.clock.now()
    const event = await verifyWebhook(body, headers, shownSecret(text), { now })
    expect(event.event).toBe('webhook.test')
  })

  test('may be switched off at first, and have no description', async () => {
    const home = await createTestDashboard({ engine: { zone } })
    await home.post('/webhooks', { url: FIELDS.url, events: 'batch.failed' })
    expect((await home.json('/v1/webhooks')).data).toMatchObject({
      webhooks: [{ active: false, description: null, events: ['batch.failed'] }],
    })
  })

  test.each([
    [
      'goes to a URL that may not be used',
      { url: 'http://app.test/hook' },
      'It must begin with https://.',
    ],
    ['goes inside', { url: 'https://10.0.0.7/hook' }, 'The address 10.0.0.7 is not public.'],
    ['is told nothing', { events: [] }, 'it takes batch.completed'],
    ['is told of what nobody knows', { events: ['x.y'] }, 'x.y'],
  ])('that %s is refused in a sentence, above what was written', async (_, wrong, sentence) => {
    const home = await createTestDashboard({ engine: { zone } })
    const fields = { ...FIELDS, description: EVIL, ...wrong }
    const { status, text } = await home.post('/webhooks', fields)
    expect(status).toBe(400)
    expect(/role="alert"><p>(.*?)<\/p>/s.exec(text)?.[1]).toContain(sentence)
    expect(text).toContain(`value="${fields.url}"`)
    expect(text).toContain(`value="${HARMLESS}"`)
    expect(text).not.toContain('<img')
    expect((await home.json('/v1/webhooks')).data).toMatchObject({ total: 0 })
  })

  test('is made once by a form that is sent twice: both answers have its secret', async () => {
    const home = await createTestDashboard({ engine: { zone } })
    const _once = numberOf((await home.get('/webhooks/new')).text)
    const first = await home.post('/webhooks', { ...FIELDS, _once })
    const second = await home.post('/webhooks', { ...FIELDS, _once })
    expect(shownSecret(first.text)).toMatch(/^whsec_/)
    expect(shownSecret(second.text)).toBe(shownSecret(first.text))
    expect((await home.json('/v1/webhooks')).data).toMatchObject({ total: 1 })
  })

  test('is made by a form that made another one before only when it is sent again, and says so', async () => {
    const home = await createTestDashboard({ engine: { zone } })
    const _once = numberOf((await home.get('/webhooks/new')).text)
    await home.post('/webhooks', { ...FIELDS, _once })
    const changed = { ...FIELDS, url: 'https://app.test/other' }
    const refused = await home.post('/webhooks', { ...changed, _once })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('This form was already sent with different content')
    const next = numberOf(refused.text)
    expect(next).not.toBe(_once)
    expect((await home.post('/webhooks', { ...changed, _once: next })).status).toBe(200)
    expect((await home.json('/v1/webhooks')).data).toMatchObject({ total: 2 })
  })

  test('is not made by a form of another site', async () => {
    const home = await createTestDashboard({ engine: { zone } })
    const wrong = await home.post('/webhooks', { ...FIELDS, _csrf: 'guessed' })
    expect(wrong.status).toBe(403)
    expect((await home.json('/v1/webhooks')).data).toMatchObject({ total: 0 })
  })
})
