import { describe, expect, test } from 'vitest'
import { REASONS } from '../../../src/engine/verdict/reason.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { toRecipients } from '../../support/engine.ts'

const textOf = (markup: string | undefined) =>
  (markup ?? '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

/** Returns the text of a step without markup. */
const rowOf = (page: string, name: string) =>
  textOf(new RegExp(`<li id="step-${name}".*?</li>`, 's').exec(page)?.[0])

/** Returns the text of the result card without markup. */
const verdictOf = (page: string) => textOf(/<div id="verdict".*?<details>/s.exec(page)?.[0])
const classOf = (page: string) => /<div id="verdict" class="is-(\w+)"/.exec(page)?.[1]

const stateOf = (page: string, name: string) =>
  new RegExp(`<li id="step-${name}" (?:class="is-(\\w+)")?`).exec(page)?.[1] ?? null

const ROWS = ['syntax', 'domain', 'servers', 'dialogue'] as const
const EVIL = '<img src=x onerror=alert(1)>'

describe('the verify page without JavaScript', () => {
  test('shows neither a result nor steps before the first verification', async () => {
    const { text } = await (await createTestDashboard()).get('/verify')
    expect(text).toContain('<section id="outcome" class="card" aria-label="Result" hidden>')
    expect(ROWS.map(row => stateOf(text, row))).toEqual([null, null, null, null])
    expect(text).not.toContain('<pre')
  })

  test('shows each step of an existing address, the meaning and what to do', async () => {
    const services = await createTestDashboard()
    const { status, text } = await services.post('/verify', { email: ' ann@a.test ' })
    expect(status).toBe(200)
    expect(ROWS.map(row => stateOf(text, row))).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(text).toContain('<section id="outcome" class="card" aria-label="Result" >')
    expect(text.indexOf('id="verdict"')).toBeLessThan(text.indexOf('id="step-syntax"'))
    expect(rowOf(text, 'syntax')).toContain('The syntax is fine.')
    expect(rowOf(text, 'domain')).toContain('a.test has one mail server, mx.a.test.')
    expect(rowOf(text, 'servers')).toContain('mx.a.test answers')
    expect(rowOf(text, 'dialogue')).toContain('C: RCPT TO:&lt;ann@a.test&gt;')
    expect(rowOf(text, 'dialogue')).toContain('S: 250 2.1.0 Ok S: 250 2.1.5 Ok')
    const verdict = verdictOf(text)
    expect(verdict).toMatch(/^ann@a\.test Deliverable /)
    expect(verdict).toContain('The mail server accepts mail for this address. Send.')
    expect(verdict).toContain('Reason Accepted accepted_email')
    expect(verdict).toMatch(/Confidence 95% Domain a\.test .*Source Mail server/)
    expect(verdict).toContain('Disposable No Role account No Free provider No')
    expect(text).toMatch(/id="email" name="email" value="ann@a.test"/)
  })

  test('shows the feedback and the signals, and the class that they led to', async () => {
    const script = { answer: () => undefined }
    const services = await createTestDashboard({
      engine: {
        script,
        engine: { signals: ['parking'] },
        zone: { 'sink.test': { MX: [[10, 'localhost']] }, localhost: { A: ['192.0.2.7'] } },
      },
    })
    const items = [{ email: 'ann@a.test', kind: 'delivered' }]
    await services.request('/v1/feedback', { body: { items } })
    const { text } = await services.post('/verify', { email: 'ann@a.test' })
    expect(classOf(text)).toBe('deliverable')
    expect(verdictOf(text)).toMatch(/Feedback: delivered on \d{4}-\d\d-\d\d\./)
    expect((await services.get('/verify/recent')).text).toContain('badge is-deliverable')
    const { text: sink } = await services.post('/verify', { email: 'ann@sink.test' })
    expect(verdictOf(sink)).toContain('The mail exchanger localhost names the sender itself')
    expect(verdictOf(sink)).toMatch(/Confidence \+20 .*Risk High/)
  })

  test('shows the reply of the server for an unknown mailbox', async () => {
    const services = await createTestDashboard()
    const { text } = await services.post('/verify', { email: 'nobody@a.test' })
    expect(classOf(text)).toBe('undeliverable')
    expect(verdictOf(text)).toContain('Reply: 550 5.1.1 No such user')
    expect(verdictOf(text)).toContain('rejected_email')
  })

  test('shows the syntax error of a malformed address and a suggestion', async () => {
    const services = await createTestDashboard()
    const { status, text } = await services.post('/verify', { email: 'ann@gmail' })
    expect(status).toBe(200)
    expect(ROWS.map(row => stateOf(text, row))).toEqual(['bad', null, null, null])
    expect(classOf(text)).toBe('undeliverable')
    expect(rowOf(text, 'domain')).toContain('Not checked.')
    expect(rowOf(text, 'servers')).toContain('Not contacted.')
    expect(verdictOf(text)).toContain('Did you mean ann@gmail.com ?')
    expect(text).toContain('<input type="hidden" name="email" value="ann@gmail.com"')
  })

  test('shows a cached result, and verifies again on request', async () => {
    const services = await createTestDashboard()
    await services.post('/verify', { email: 'ann@a.test' })
    const known = (await services.post('/verify', { email: 'ann@a.test' })).text
    expect(rowOf(known, 'servers')).toContain('the cached answer is used')
    expect(rowOf(known, 'dialogue')).toContain('Not needed: the result is cached.')
    expect(verdictOf(known)).toContain('Source Cached')
    expect(services.mx.sessions).toHaveLength(1)
    const again = (await services.post('/verify', { email: 'ann@a.test', again: 'on' })).text
    expect(verdictOf(again)).toContain('Source Mail server')
    expect(services.mx.sessions).toHaveLength(2)
  })

  test('in the sandbox contacts no server, costs nothing and shows that it simulates', async () => {
    const services = await createTestDashboard()
    const { text } = await services.post('/verify', { email: 'greylisted@a.test', sandbox: 'on' })
    expect(verdictOf(text)).toContain('greylisted@a.test Unknown Simulated')
    expect(rowOf(text, 'domain')).toContain('Simulated: a.test has one mail server')
    expect(services.mx.sessions).toHaveLength(0)
    expect(text).toMatch(/id="sandbox" name="sandbox" checked/)
  })

  test('shows an error simulated by the sandbox', async () => {
    const services = await createTestDashboard()
    const simulated = await services.post('/verify', { email: 'error-auth@a.test', sandbox: 'on' })
    expect(simulated.status).toBe(401)
    expect(verdictOf(simulated.text)).toContain(
      'The sandbox simulates an error for this address: the API returns 401 with &quot;authentication_error&quot;',
    )
  })

  test('shows a rate limit error with its status, and keeps the address', async () => {
    const services = await createTestDashboard({ plan: 'free' })
    const asked = []
    for (let n = 0; n < 12; n++) asked.push(await services.post('/verify', { email: 'ann@a.test' }))
    const last = asked.at(-1)
    expect(last?.status).toBe(429)
    expect(verdictOf(last?.text ?? '')).toMatch(/limit/i)
    expect(last?.text).toMatch(/id="email" name="email" value="ann@a.test"/)
  })

  test('renders markup in an address and a reply as text', async () => {
    const services = await createTestDashboard({
      engine: { script: toRecipients(() => `550 5.1.1 ${EVIL} is unknown`) },
    })
    for (const email of [`"${EVIL}"@a.test`, EVIL, `ann@${EVIL}`, 'bob@a.test']) {
      const { text } = await services.post('/verify', { email })
      expect(text).not.toContain('<img')
      expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;')
    }
    const { text } = await services.get(`/verify?email=${encodeURIComponent(`"><script>${EVIL}`)}`)
    expect(text).toContain('value="&quot;&gt;&lt;script&gt;')
  })

  test('lists recent verifications, which can be repeated', async () => {
    const services = await createTestDashboard()
    expect((await services.get('/verify')).text).toContain('No verifications yet')
    await services.post('/verify', { email: 'ann@a.test' })
    await services.ledger.stop()
    const { text } = await services.get('/verify/recent')
    expect(text).toMatch(/^\s*<section id="recent"/)
    expect(text).toMatch(/<th scope="row">ann@a\.test<\/th>.*Deliverable.*Accepted/s)
    expect(text).toContain('<input type="hidden" name="email" value="ann@a.test"')
  })

  test('is closed to a key without the scope, and hides the history without its scope', async () => {
    const services = await createTestDashboard()
    await services.signIn(await services.addKey({ scopes: ['dashboard'], name: 'narrow' }))
    const page = (await services.get('/verify')).text
    expect(page).toContain('The key &quot;narrow&quot; lacks the scope &quot;verify:single&quot;')
    expect(page).not.toContain('id="options"')
    await services.signIn(await services.addKey({ scopes: ['dashboard', 'verify:single'] }))
    const blind = await services.get('/verify')
    expect([blind.status, blind.text.includes('id="recent"')]).toEqual([200, false])
  })

  test('shows the meaning of each reason of the sandbox', async () => {
    const services = await createTestDashboard()
    for (const [email, reason] of [
      ['role@a.test', 'role_account'],
      ['mailbox-full@a.test', 'mailbox_full'],
      ['no-mx@a.test', 'no_mx_record'],
      ['timeout@a.test', 'timeout'],
    ] as const) {
      expect(REASONS).toContain(reason)
      const { text } = await services.post('/verify', { email, sandbox: 'on' })
      expect(verdictOf(text)).toContain(reason)
    }
  })
})
