import { html } from 'hono/html'
import { describe, expect, test } from 'vitest'
import type { HealthSource } from '../../../src/dashboard/health/source.ts'
import type { Check } from '../../../src/doctor/doctor.ts'
import type { DoctorChecks } from '../../../src/doctor/doctor-cache.ts'
import type { BlockedReason } from '../../../src/engine/smtp/reply-rules/generic.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { operatorStatus, operatorsOf, refusalWith } from './status.ts'

const FOUND: DoctorChecks = {
  checks: [
    { check: 'port-25', egress: null, state: 'ok', says: '5 of 5 greeted us', todo: null },
    { check: 'ptr', egress: null, state: 'fail', says: 'no name', todo: 'Set a PTR record.' },
  ],
  at: Date.UTC(2026, 5, 1, 11, 30),
  isRunning: false,
  fault: null,
}

/** The dashboard, signed in to an admin account. */
const adminDashboard = (health: Partial<HealthSource> = {}) =>
  createTestDashboard({ health, isAdmin: true })

/** Returns the text of a page without markup. */
const textOf = (page: string) =>
  page
    .replace(/<[^>]*>/g, '')
    .replace(/\s+/g, ' ')
    .replaceAll('&#39;', "'")

const words = async (health: Partial<HealthSource>, path = '/doctor') =>
  textOf((await (await adminDashboard(health)).get(path)).text)

describe('health', () => {
  test('is for admins; others get 403 on every path', async () => {
    const asked: string[] = []
    const services = await createTestDashboard({
      health: { rerunChecks: () => void asked.push('again'), alert: () => html`All is lost.` },
    })
    for (const path of ['/doctor', '/doctor/status', '/doctor/findings']) {
      const { status, text } = await services.get(path)
      expect([path, status]).toEqual([path, 403])
      expect(text).toContain('Health is only for administrators')
    }
    expect((await services.post('/doctor/examine')).status).toBe(403)
    expect(asked).toEqual([])
    expect((await services.get('/sessions')).text).not.toContain('All is lost.')
    expect((await services.get('/sessions')).text).not.toContain('href="/doctor"')
  })

  test('shows the members of a cluster, if there is one', async () => {
    const member = { name: 'mail-1 (412)', version: '1.2.3', joinedAt: Date.UTC(2026, 5, 1, 11) }
    const text = await words({
      members: async () => [
        { ...member, id: 'mem_a', role: 'serve', egresses: ['default'], quietMs: 1_200 },
        { ...member, id: 'mem_b', role: 'worker', egresses: ['a', 'b'], quietMs: 8_000 },
      ],
    })
    expect(text).toContain(
      'mail-1 (412) Server and worker default 1.2.3 2026-06-01 11:00 UTC 1 s ago',
    )
    expect(text).toContain('Worker a, b 1.2.3 2026-06-01 11:00 UTC 8 s ago')
    expect(text).not.toContain('Blocks of other egresses')
    expect(await words({})).not.toContain('Members')
  })

  test('shows blocks of egresses of other processes, and servers without egresses', async () => {
    const { since, until, answer } = refusalWith('listed <b>there</b>')
    const member = { name: 'mail-1', version: '1.2.3', joinedAt: since, quietMs: 1_000 }
    const text = await words({
      members: async () => [{ ...member, id: 'mem_a', role: 'serve', egresses: [] }],
      peerBlocks: async () => [{ title: 'Outlook.com', egress: 'oslo', since, until, answer }],
    })
    expect(text).toMatch(/mail-1 Server 1\.2\.3/)
    expect(text).toContain(
      'Outlook.com has been blocking the egress "oslo" since 2026-06-01 12:00 UTC',
    )
    expect(text).toContain('550 5.7.1 listed &lt;b&gt;there')
  })

  test('shows activity with units', async () => {
    const text = await words({
      queue: () => ({ jobs: 1, waiting: 1_234, running: 2 }),
      workers: async () => ({
        concurrency: 200,
        requestsInFlight: 3,
        deliveriesOpen: 1,
        noticesOpen: 0,
      }),
      process: async () => ({
        version: '1.2.3',
        upMs: 125 * MINUTE,
        memoryBytes: 163e6,
        databaseBytes: 2_400e6,
        freeBytes: null,
      }),
    })
    for (const line of [
      ...['1 job', '1,234 tasks', '2 tasks', '200 connections'],
      ...['3 requests', '1 delivery', '0 alerts', '1.2.3', '2 h 5 min'],
      ...['163 MB', '2.4 GB', 'Unknown'],
    ]) {
      expect(text).toContain(line)
    }
  })

  test('shows the alert on the pages of verifications, and a mark in the sidebar of every page', async () => {
    const services = await adminDashboard({ alert: () => html`Outlook.com refuses us.` })
    for (const path of ['/verify', '/lists']) {
      expect((await services.get(path)).text).toContain('Outlook.com refuses us.')
    }
    const { text } = await services.get('/sessions')
    expect(text).toContain('title="needs attention"')
    expect(text).not.toContain('Outlook.com refuses us.')
  })
})

describe('the check results', () => {
  test('are a table with fixes and a summary', async () => {
    const text = await words({ doctorChecks: () => FOUND })
    expect(text).toContain('1 failure. Fix the failures before verifying addresses.')
    expect(text).toContain('Checked at 2026-06-01 11:30 UTC.')
    expect(text).toMatch(/Port 25 OK 5 of 5 greeted us/)
    expect(text).toMatch(/Reverse DNS \(PTR\) Failed No name ?Fix: Set a PTR record\./)
  })

  test('are summarized with failures and warnings', async () => {
    const summaryOf = (...states: Check['state'][]) => {
      const checks = states.map(state => ({ ...(FOUND.checks[0] as Check), state }))
      return words({ doctorChecks: () => ({ ...FOUND, checks }) })
    }
    expect(await summaryOf('ok')).toContain('All checks passed.')
    expect(await summaryOf('ok', 'warn')).toContain('1 warning. Mail servers can be probed.')
    expect(await summaryOf('fail', 'fail', 'warn', 'warn')).toContain(
      '2 failures, 2 warnings. Fix the failures before verifying addresses.',
    )
  })

  test('poll while the checks run', async () => {
    const state = { found: { ...FOUND, isRunning: true } }
    const services = await adminDashboard({ doctorChecks: () => state.found })
    const polling = /<section id="findings" hx-get="\/doctor\/findings" hx-trigger="every 1s"/
    for (const path of ['/doctor', '/doctor/findings']) {
      expect((await services.get(path)).text).toMatch(polling)
    }
    state.found = FOUND
    const { text } = await services.get('/doctor/findings')
    expect(text).not.toMatch(polling)
    expect(text).not.toContain('<html')
  })

  test('show why a run failed', async () => {
    const text = await words({ doctorChecks: () => ({ ...FOUND, fault: 'no <b>disk</b>' }) })
    expect(text).toContain('The checks failed: no &lt;b&gt;disk&lt;/b&gt;.')
  })

  test('are refreshed by a button, which reports if it is too soon', async () => {
    const state = { asked: 0, isRunning: true }
    const services = await adminDashboard({
      doctorChecks: () => ({ ...FOUND, isRunning: state.isRunning }),
      rerunChecks: () => void state.asked++,
    })
    const sent = await services.post('/doctor/examine')
    expect([sent.status, sent.headers.get('Location')]).toEqual([303, '/doctor'])
    expect((await services.get('/doctor')).text).toContain('Running the checks.')
    state.isRunning = false
    await services.post('/doctor/examine')
    expect((await services.get('/doctor')).text).toContain('less than a minute ago')
    expect(state.asked).toBe(2)
    expect((await services.post('/doctor/examine', { _csrf: 'wrong' })).status).toBe(403)
    expect(state.asked).toBe(2)
  })
})

describe('the operators', () => {
  test('are empty at first, with an explanation', async () => {
    expect(await words({})).toContain('No mail server was probed in the last two hours.')
  })

  test('show their rate and the usual one, and their egress if there are several', async () => {
    const one = operatorStatus({ sessions: 1, sessionsAllowed: 1, sessionsPerSecond: 0.0033 })
    const text = await words({ operators: () => operatorsOf([one]) })
    expect(text).toContain('1 of 1 (usually 2)')
    expect(text).toContain('0.0033 (usually 1)')
    expect(text).toContain('Slowed down')
    expect(text).not.toContain('Egress')
    const egresses = ['a', 'b'].map(name => ({ name, closedSince: null, port: 25 }))
    expect(await words({ operators: () => operatorsOf([one], { egresses, left: 12 }) })).toMatch(
      /Egress.*12 more providers probed recently/,
    )
  })

  test('that block this service show since when, the reply, the fix and the effect', async () => {
    const refusal = refusalWith('Listed, see https://lists.example/lookup?q=192.0.2.9.', {
      skipped: 1_200,
    })
    const services = await adminDashboard({
      operators: () => operatorsOf([operatorStatus({ title: 'Outlook.com', refusal })]),
    })
    const { text } = await services.get('/doctor/status')
    expect(textOf(text)).toContain(
      'Outlook.com has been rejecting the IP address of this server since 2026-06-01 12:00 UTC: "550 5.7.1 Listed, see https://lists.example/lookup?q=192.0.2.9.". It is on a blocklist',
    )
    expect(textOf(text)).toContain(
      'Its addresses are unknown (1,200 addresses so far) until 2026-06-01 12:30 UTC; then ev tries again.',
    )
    expect(text).toContain(
      'href="https://lists.example/lookup?q=192.0.2.9" rel="noopener noreferrer nofollow"',
    )
    expect(text).toContain('href="#check-blocklists"')
    await services.clock.advance(31 * MINUTE)
    expect(textOf((await services.get('/doctor/status')).text)).toContain(
      'the next one shows whether the block is lifted',
    )
  })

  test('show a fix for each kind of block', async () => {
    const textFor = async (why: BlockedReason) => {
      const { answer } = refusalWith('no')
      const refusal = refusalWith('no', { answer: { ...answer, why } as typeof answer })
      return words({ operators: () => operatorsOf([operatorStatus({ refusal })]) })
    }
    expect(await textFor('rdns')).toMatch(/rejecting the host name.*resolves back to the address/)
    expect(await textFor('sender')).toMatch(/rejecting the sender address.*--mail-from/)
    expect(await textFor('tls')).toMatch(/rejecting connections without TLS.*--starttls never/)
    expect(await textFor('auth')).toMatch(/rejecting clients that do not authenticate/)
    expect(await textFor('policy')).toMatch(/rejecting this server since.*Read the reply/)
  })

  test('that another egress takes over have no unknown addresses', async () => {
    const one = operatorStatus({ refusal: refusalWith('no'), othersAsk: true })
    const text = await words({ operators: () => operatorsOf([one]) })
    expect(text).toContain('The other egresses take over.')
    expect(text).not.toContain('are unknown')
  })

  test('that are paused resume, and show why they paused', async () => {
    const pause = { since: Date.UTC(2026, 5, 1, 12), until: Date.UTC(2026, 5, 1, 12, 5) }
    const textFor = (why: 'throttled' | 'unknown-users') =>
      words({ operators: () => operatorsOf([operatorStatus({ pause: { ...pause, why } })]) })
    expect(await textFor('throttled')).toContain(
      'mx.test asked for fewer connections at 2026-06-01 12:00 UTC. No action is needed: lists wait and resume at 2026-06-01 12:05 UTC.',
    )
    expect(await textFor('unknown-users')).toContain('rejected 20 addresses in a row as unknown')
  })

  test('are unreachable if outbound SMTP is blocked', async () => {
    const egresses = [{ name: 'a', closedSince: Date.UTC(2026, 5, 1, 11), port: 25 }]
    expect(await words({ operators: () => operatorsOf([], { egresses }) })).toContain(
      'No mail server has been reachable on port 25 since 2026-06-01 11:00 UTC',
    )
  })
})

describe('the reply of a mail server', () => {
  const EVIL = '<img src=x onerror=alert(1)> "\'><script>alert(2)</script> \u202Etxt'

  test('is rendered as text, in blocks and in check results', async () => {
    const check: Check = { check: 'port-25', egress: EVIL, state: 'fail', says: EVIL, todo: EVIL }
    const one = operatorStatus({
      title: EVIL,
      operator: '"><img src=x>',
      refusal: refusalWith(EVIL),
    })
    const services = await adminDashboard({
      operators: () => operatorsOf([one]),
      alert: () => html`${EVIL}`,
      doctorChecks: () => ({ ...FOUND, checks: [check] }),
    })
    const { text } = await services.get('/doctor')
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;')
    expect(text).not.toMatch(/<img|<script>/)
  })

  test('is one line without control characters, truncated', async () => {
    const refusal = refusalWith(`no\r\nway\u202E${'a'.repeat(400)}`)
    const text = await words({ operators: () => operatorsOf([operatorStatus({ refusal })]) })
    expect(text).toMatch(/"550 5\.7\.1 no way\uFFFDa{282}…"/)
  })

  test('is searched for a link to a public website', async () => {
    const linked = async (reply: string) => {
      const one = operatorStatus({ refusal: refusalWith(reply) })
      const services = await adminDashboard({ operators: () => operatorsOf([one]) })
      return (
        /See <a [^>]*-link"[^>]*href="([^"]*)"/.exec((await services.get('/doctor')).text)?.[1] ??
        null
      )
    }
    expect(await linked('see HTTPS://Lists.example/a?b=c&d=e, or mail us')).toBe(
      'https://lists.example/a?b=c&amp;d=e',
    )
    expect(await linked('see\r\nhttp://lists.example/x\r\nnow')).toBe('http://lists.example/x')
    expect(await linked('(https://lists.example/"onmouseover="alert(1))')).toBe(
      'https://lists.example/',
    )
    expect(await linked('javascript:alert(1) data:text/html,x')).toBeNull()
    expect(await linked('https://localhost/')).toBeNull()
    expect(await linked(`https://lists.example/${'a'.repeat(300)}`)).toBeNull()
  })
})
