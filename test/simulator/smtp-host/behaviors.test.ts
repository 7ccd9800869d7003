import { X509Certificate } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { BEHAVIORS } from '../../../src/simulator/smtp-host/behaviors.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'
import { waitUntil } from '../../support/wait.ts'
import { Talk } from '../talk.ts'

const OVERLAID = { seconds: 3_600, max: 2, ms: 1, mailboxes: ['ann', 'bob.*'] }
let simulator: Simulator

beforeAll(async () => {
  const plans = Object.keys(BEHAVIORS).map(behavior => [
    `${behavior}.test`,
    { behavior: behavior, ...OVERLAID },
  ])
  simulator = await startSimulator({ domains: {}, hosts: Object.fromEntries(plans) })
})
afterAll(() => simulator.close())

/** Opens a session up to MAIL. */
async function atMail(behavior: string): Promise<Talk> {
  const talk = await Talk.with(simulator, `${behavior}.test`)
  expect(await talk.reply()).toBe(`220 ${behavior}.test ESMTP`)
  expect(await talk.say('EHLO probe.test')).toMatch(/^250-/)
  return talk
}

/** Opens a session up to RCPT. */
async function atRcpt(behavior: string): Promise<Talk> {
  const talk = await atMail(behavior)
  expect(await talk.say('MAIL FROM:<>')).toMatch(/^250 /)
  return talk
}

describe('the reply of each behavior to a recipient', () => {
  test.each([
    ['polite', 'ann@a.test', '250 2.1.5 Ok'],
    ['polite', 'ANN@a.test', '250 2.1.5 Ok'],
    ['polite', '"ann"@a.test', '250 2.1.5 Ok'],
    ['polite', 'bob.berg@a.test', '250 2.1.5 Ok'],
    [
      'polite',
      'zoe@a.test',
      '550 5.1.1 <zoe@a.test>: Recipient address rejected: User unknown in local recipient table',
    ],
    ['polite', 'bob@a.test', /^550 5\.1\.1 /],
    ['polite', 'full.ann@a.test', /^552 5\.2\.2 .*full/],
    ['polite', 'full-for-now.ann@a.test', /^452 4\.2\.2 .*full/],
    ['polite', 'disabled.ann@a.test', /^550 5\.2\.1 .*disabled/],
    ['polite', 'moved.ann@a.test', /^551 5\.1\.6 /],
    ['polite', 'members.ann@a.test', /^550 5\.7\.133 /],
    ['catch-all', 'whoever@a.test', '250 2.1.5 Ok'],
    ['rejects-all', 'ann@a.test', /^550 5\.1\.1 /],
    ['greylist', 'ann@a.test', /^450 4\.2\.0 .*Greylisted, try again in 3600 seconds$/],
    ['blocks-at-rcpt', 'ann@a.test', /^554 5\.7\.1 .*127\.0\.0\.1.* blocked using/],
    ['temporary', 'ann@a.test', /^451 4\.3\.0 /],
    ['full', 'ann@a.test', /^552 5\.2\.2 /],
    ['full', 'zoe@a.test', /^550 5\.1\.1 /],
    ['disabled', 'ann@a.test', /^550 5\.2\.1 /],
    ['slow', 'ann@a.test', '250 2.1.5 Ok'],
    ['drip', 'zoe@a.test', /^550 5\.1\.1 /],
    ['no-pipelining', 'ann@a.test', '250 2.1.5 Ok'],
    ['hangs-up', 'ann@a.test', null],
    ['resets', 'ann@a.test', 'ECONNRESET'],
  ])('%s, of %s', async (behavior, address, reply) => {
    const talk = await atRcpt(behavior)
    const actual = await talk.say(`RCPT TO:<${address}>`)
    if (reply instanceof RegExp) expect(actual).toMatch(reply)
    else expect(actual).toBe(reply)
    talk.hangUp()
  })
})

describe('special behaviors', () => {
  test('blocks-us greets with 554, replies 503 to all commands but QUIT', async () => {
    const talk = await Talk.with(simulator, 'blocks-us.test')
    expect(await talk.reply()).toMatch(/^554 5\.7\.1 .*blocked using zen\.blocklist\.example/)
    expect(await talk.say('EHLO probe.test')).toMatch(/^503 /)
    expect(await talk.say('QUIT')).toMatch(/^221 /)
    expect(await talk.reply()).toBeNull()
  })

  test('sender-refused rejects every sender', async () => {
    const talk = await atMail('sender-refused')
    expect(await talk.say('MAIL FROM:<me@probe.test>')).toMatch(/^550 5\.1\.8 <me@probe\.test>/)
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^503 /)
    talk.hangUp()
  })

  test('needs-starttls requires TLS, and discards the state before it', async () => {
    const talk = await Talk.with(simulator, 'needs-starttls.test')
    await talk.reply()
    expect(await talk.say('EHLO probe.test')).toContain('250 STARTTLS')
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^530 5\.7\.0 /)
    expect(await talk.say('STARTTLS')).toMatch(/^220 /)
    await talk.secure()
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^503 .*EHLO/)
    expect(await talk.say('EHLO probe.test')).not.toContain('STARTTLS')
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^250 /)
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^250 /)
    expect(await talk.say('RCPT TO:<zoe@a.test>')).toMatch(/^550 /)
    talk.hangUp()
  })

  test('one-recipient accepts one in each transaction', async () => {
    const talk = await atRcpt('one-recipient')
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^250 /)
    expect(await talk.say('RCPT TO:<bob.b@a.test>')).toMatch(/^452 4\.5\.3 /)
    await talk.say('RSET')
    await talk.say('MAIL FROM:<>')
    expect(await talk.say('RCPT TO:<bob.b@a.test>')).toMatch(/^250 /)
    talk.hangUp()
  })

  test('throttles replies 421 after the maximum of recipients, and closes the connection', async () => {
    const talk = await atRcpt('throttles')
    await talk.say('RCPT TO:<ann@a.test>')
    await talk.say('RSET')
    await talk.say('MAIL FROM:<>')
    expect(await talk.say('RCPT TO:<zoe@a.test>')).toMatch(/^550 /)
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^421 4\.7\.0 throttles\.test/)
    expect(await talk.reply()).toBeNull()
  })

  test('closes closes the connection after an unknown user', async () => {
    const talk = await atRcpt('closes')
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^250 /)
    expect(await talk.say('RCPT TO:<zoe@a.test>')).toMatch(/^550 /)
    expect(await talk.reply()).toBeNull()
  })

  test('dead refuses the connection', async () => {
    const ip = simulator.addresses.get('dead.test')?.[0]
    const error = await new Promise<NodeJS.ErrnoException>(resolve =>
      connect(simulator.smtpPort, ip).on('error', resolve),
    )
    expect(error.code).toBe('ECONNREFUSED')
  })

  test('helo-only rejects EHLO', async () => {
    const talk = await Talk.with(simulator, 'helo-only.test')
    await talk.reply()
    expect(await talk.say('EHLO probe.test')).toMatch(/^500 /)
    expect(await talk.say('HELO probe.test')).toBe('250 helo-only.test')
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^250 /)
    talk.hangUp()
  })

  test('no-pipelining does not offer it, and ends the session of a client that pipelines', async () => {
    const talk = await Talk.with(simulator, 'no-pipelining.test')
    await talk.reply()
    expect(await talk.say('EHLO probe.test')).not.toContain('PIPELINING')
    talk.send('MAIL FROM:<>\r\nRCPT TO:<ann@a.test>\r\n')
    expect(await talk.reply()).toMatch(/^554 .*synchronization/)
    expect(await talk.reply()).toBeNull()
  })

  test('no-smtputf8 neither offers nor accepts it', async () => {
    const talk = await Talk.with(simulator, 'no-smtputf8.test')
    await talk.reply()
    expect(await talk.say('EHLO probe.test')).not.toContain('SMTPUTF8')
    expect(await talk.say('MAIL FROM:<> SMTPUTF8')).toMatch(/^555 5\.5\.4 /)
    talk.hangUp()
  })

  test('polite accepts an address beyond ASCII only with SMTPUTF8', async () => {
    const talk = await atRcpt('catch-all')
    expect(await talk.say('RCPT TO:<zoë@a.test>')).toMatch(/^553 5\.6\.7 /)
    await talk.say('RSET')
    await talk.say('MAIL FROM:<> SMTPUTF8')
    expect(await talk.say('RCPT TO:<zoë@a.test>')).toMatch(/^250 /)
    talk.hangUp()
  })

  test('early sends all its replies before the first command', async () => {
    const talk = await Talk.with(simulator, 'early.test')
    expect(await talk.reply()).toMatch(/^220 /)
    expect(await talk.reply()).toMatch(/^250-/)
    expect(await talk.reply()).toMatch(/^250 2\.1\.0/)
    expect(await talk.reply()).toMatch(/^250 2\.1\.5/)
    talk.hangUp()
  })

  test('garbage is not SMTP', async () => {
    const talk = await Talk.with(simulator, 'garbage.test')
    const bytes = await talk.received(20)
    expect(bytes).not.toMatch(/^\d{3}[ -]/)
    expect(bytes).toContain('\u0000\u00ff')
    talk.hangUp()
  })

  test('endless never ends its EHLO reply', async () => {
    const talk = await Talk.with(simulator, 'endless.test')
    await talk.reply()
    talk.send('EHLO probe.test\r\n')
    expect(await talk.received(100_000)).toMatch(/^(250-and one more\r\n)+/)
    talk.hangUp()
  })

  test('silent never replies', async () => {
    const talk = await Talk.with(simulator, 'silent.test')
    const before = simulator.counters().hosts['silent.test']?.pregreet
    talk.send('EHLO probe.test\r\n')
    // Once the command is counted, a reply would already have arrived.
    await waitUntil(() => simulator.counters().hosts['silent.test']?.pregreet !== before)
    expect(await talk.received(0)).toBe('')
    talk.hangUp()
  })
})

test('the certificate of a host has its name and is self-signed', () => {
  const certificate = new X509Certificate(selfSigned('mx.a.test').cert)
  expect(certificate.subject).toBe('CN=mx.a.test')
  expect(certificate.verify(certificate.publicKey)).toBe(true)
})
