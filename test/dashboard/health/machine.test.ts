import { describe, expect, test } from 'vitest'
import type { HealthSource } from '../../../src/dashboard/health/source.ts'
import type { DoctorChecks } from '../../../src/doctor/doctor-cache.ts'
import type { MachineStatus } from '../../../src/engine/machine-status.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { stopHalfway, submitHalfway } from '../../support/list-service.ts'
import { operatorStatus, operatorsOf, refusalWith } from './status.ts'

const SINCE = Date.UTC(2026, 5, 1, 11, 30)
const DETAIL = 'the DNS server says that gmail.com does not exist, so its answers are not trusted'

const READY: MachineStatus = { state: 'ready', dns: 'ok', smtp: 'ok', problems: [] }
const CHECKING: MachineStatus = { ...READY, state: 'checking', dns: 'checking' }
const NO_DNS: MachineStatus = {
  state: 'failing',
  dns: 'failing',
  smtp: 'ok',
  problems: [{ cause: 'dns', detail: DETAIL, since: null }],
}
const NO_SMTP: MachineStatus = {
  state: 'failing',
  dns: 'ok',
  smtp: 'failing',
  problems: [{ cause: 'smtp', detail: 'no mail server can be reached on port 25', since: SINCE }],
}

const PASSED: DoctorChecks = {
  checks: [{ check: 'dns', egress: null, state: 'ok', says: 'fine', todo: null }],
  at: SINCE,
  isRunning: false,
  fault: null,
}
const FIRST_RUN: DoctorChecks = { checks: [], at: null, isRunning: true, fault: null }

const dashboardWith = (health: Partial<HealthSource>, isAdmin = true) =>
  createTestDashboard({ health: { doctorChecks: () => PASSED, ...health }, isAdmin })

/** The main part of a page as text. */
const textOf = (page: string) =>
  page
    .slice(page.indexOf('<main'))
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ (?=[.,;])/g, '')
    .replaceAll('&quot;', '"')

const overviewOf = async (health: Partial<HealthSource>, isAdmin = true) =>
  textOf((await (await dashboardWith(health, isAdmin)).get('/overview')).text)

const POLLING = 'hx-get="/overview/attention" hx-trigger="every 2s"'

describe('the overview', () => {
  test('says that this machine is being checked until the first checks end, then the truth', async () => {
    const now: { machine: MachineStatus; doctor: DoctorChecks } = {
      machine: CHECKING,
      doctor: FIRST_RUN,
    }
    const dashboard = await dashboardWith({
      machine: () => now.machine,
      doctorChecks: () => now.doctor,
    })
    const read = async (path: string) => {
      const { text } = await dashboard.get(path)
      return [
        text.includes('Checking this machine …'),
        text.includes('No problems found'),
        text.includes(POLLING),
      ]
    }
    for (const path of ['/overview', '/overview/attention']) {
      now.machine = CHECKING
      now.doctor = FIRST_RUN
      expect(await read(path)).toEqual([true, false, true])
      now.machine = READY
      expect(await read(path)).toEqual([true, false, true])
      now.doctor = PASSED
      expect(await read(path)).toEqual([false, true, false])
      now.machine = CHECKING
      expect(await read(path)).toEqual([true, false, true])
    }
  })

  test('says at once that this machine cannot verify, although its checks still run', async () => {
    const text = await overviewOf({ machine: () => NO_DNS, doctorChecks: () => FIRST_RUN })
    expect(text).toContain(
      'This machine cannot verify addresses now The DNS server says that gmail.com does not exist, so its answers are not trusted. Lists wait, and single addresses end as unknown. Fix',
    )
    expect(text).toContain('Checking this machine …')
    expect(text).not.toContain('No problems found')
  })

  test('says so to other accounts too, without a link to a page that they cannot open', async () => {
    const { text } = await (await dashboardWith({ machine: () => NO_SMTP }, false)).get('/overview')
    expect(textOf(text)).toContain(
      'This machine cannot verify addresses now No mail server can be reached on port 25, since 2026-06-01 11:30 UTC. Addresses that a mail server has to confirm end as unknown.',
    )
    expect(text).not.toContain('href="/doctor"')
    const checking = await overviewOf({ machine: () => CHECKING }, false)
    expect(checking).toContain('Checking this machine …')
    expect(checking).not.toContain('No problems found')
    expect(await overviewOf({}, false)).toContain('No problems found')
  })

  test('says that the checks of this machine failed', async () => {
    const fault = 'disk <b>gone'
    const text = await overviewOf({
      doctorChecks: () => ({ ...FIRST_RUN, isRunning: false, fault }),
    })
    expect(text).toContain('This machine was not checked The checks failed: disk &lt;b&gt;gone Fix')
    expect(text).not.toContain('No problems found')
  })

  test('lists the providers that block this machine, and egresses that reach no server', async () => {
    const refusal = refusalWith('listed', { skipped: 1_234 })
    const ended = refusalWith('listed', { until: SINCE })
    const { since, until, answer } = refusal
    const text = await overviewOf({
      operators: () =>
        operatorsOf(
          [
            operatorStatus({ title: 'Outlook.com', refusal }),
            operatorStatus({ title: 'Yahoo', egress: 'b', refusal, othersAsk: true }),
            operatorStatus({ title: 'Gmail', refusal: ended }),
            operatorStatus({ title: 'GMX' }),
          ],
          { egresses: [{ name: 'b', closedSince: SINCE, port: 25 }] },
        ),
      peerBlocks: async () => [{ title: 'Orange', egress: 'oslo', since, until, answer }],
    })
    expect(text).toContain(
      'Outlook.com blocks this machine Since 2026-06-01 12:00 UTC; 1,234 addresses unknown. Next attempt 2026-06-01 12:30 UTC. Fix',
    )
    expect(text).toContain('Yahoo blocks the egress "b" Since')
    expect(text).toContain('Orange blocks the egress "oslo" Since')
    expect(text).toContain(
      'No mail server can be reached from the egress "b" On port 25, since 2026-06-01 11:30 UTC. The other egresses take over.',
    )
    expect(text).not.toMatch(/Gmail|GMX|No problems found/)
  })

  test('lists five blocks and the number of the others', async () => {
    const shown = Array.from({ length: 7 }, (_, n) =>
      operatorStatus({ title: `Provider ${n}`, refusal: refusalWith('listed') }),
    )
    const text = await overviewOf({ operators: () => operatorsOf(shown) })
    expect(text).toContain('Provider 4 blocks this machine')
    expect(text).not.toContain('Provider 5')
    expect(text).toContain('2 more blocks Fix')
  })
})

describe('the pages that verify', () => {
  test.each(['/verify', '/lists/new', '/lists'])(
    '%s says that this machine cannot verify, and why',
    async path => {
      const { text } = await (await dashboardWith({ machine: () => NO_DNS })).get(path)
      expect(textOf(text)).toContain(
        'This machine cannot verify addresses now. The DNS server says that gmail.com does not exist, so its answers are not trusted. Lists wait, and single addresses end as unknown. See Health for the cause and the fix.',
      )
      expect(text).toContain('See <a href="/doctor">Health</a>')
      const other = (await (await dashboardWith({ machine: () => NO_DNS }, false)).get(path)).text
      expect(textOf(other)).toContain(
        'single addresses end as unknown. Contact the administrator of this service.',
      )
      expect(other).not.toContain('href="/doctor"')
      const fine = (await (await dashboardWith({})).get(path)).text
      expect(fine).not.toContain('cannot verify')
    },
  )

  test('keep the notice until the problem ends, without announcing it again', async () => {
    let machine = NO_DNS
    const { get } = await dashboardWith({ machine: () => machine })
    expect((await get('/verify')).text).toContain(
      'id="machine" hx-get="/overview/machine" hx-trigger="every 10s" hx-swap="outerHTML"',
    )
    expect((await get('/overview/machine')).status).toBe(204)
    machine = READY
    expect(await get('/overview/machine')).toMatchObject({ status: 200, text: '' })
  })

  test('other pages mark Health in the sidebar', async () => {
    const { text } = await (await dashboardWith({ machine: () => NO_SMTP })).get('/sessions')
    expect(text).toContain('title="needs attention"')
    expect(text).not.toContain('cannot verify')
  })
})

test('Health says that this machine cannot verify, and a list that waits says for what', async () => {
  const health = { doctorChecks: () => PASSED, machine: () => NO_DNS }
  const dashboard = await createTestDashboard({ health, isAdmin: true, ...stopHalfway().options })
  expect(textOf((await dashboard.get('/doctor')).text)).toContain(
    'This machine cannot verify addresses now. The DNS server says that gmail.com does not exist',
  )
  const id = await submitHalfway(dashboard)
  const failure = { kind: 'missing', detail: DETAIL }
  const check = { failure, dueInMs: 30_000, made: 1, startIfDue: () => {} }
  Object.defineProperty(dashboard.service.engine, 'resolverCheck', { value: check })
  const { text } = await dashboard.get(`/lists/${id}`)
  expect(textOf(text)).toContain(
    `${DETAIL.replace('the', 'The')}. Next check at 2026-06-01 12:00 UTC. See Health.`,
  )
  expect(textOf(text)).not.toContain('as fast as')
  expect(text).toContain('</time>. See <a href="/doctor">Health</a>.</li>')
})
