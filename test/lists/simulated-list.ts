import { setTimeout } from 'node:timers/promises'
import type { EvClient } from '../../src/client/client.ts'
import type { SimulatorCounters } from '../../src/simulator/counters.ts'
import type { Scenario } from '../../src/simulator/scenario.ts'
import type { SimulatorProcess } from '../../src/simulator/simulator-process.ts'

/** Domains with an exchanger each, all at one IP address. */
const VANITIES = Array.from({ length: 6 }, (_, n) => `v${n}.test`)
const VANITY_IP = '127.40.0.1'

/**
 * A list at simulated servers with every kind of operator: vanity exchangers at one IP address, a
 * server that greylists, a backup of another operator, a catch-all, and one that blocks the client.
 * Verifying it takes some seconds.
 */
const ROWS = [
  ...rowsAt(240, VANITIES, n => (isGone(n) ? 'rejected_email' : 'accepted_email')),
  ...rowsAt(20, ['grey.test'], n => (isGone(n) ? 'rejected_email' : 'accepted_email')),
  ...rowsAt(20, ['backed.test'], n => (isGone(n) ? 'rejected_email' : 'accepted_email')),
  ...rowsAt(20, ['everyone.test'], () => 'catch_all'),
  ['user1@blocked.test', 'probe_blocked'],
  ['user1@absent.test', 'invalid_domain'],
  ['nonsense', 'invalid_email'],
] as const

function rowsAt(
  count: number,
  domains: readonly string[],
  reasonOf: (n: number) => string,
): (readonly [text: string, reason: string])[] {
  return Array.from({ length: count }, (_, n) => [
    `${isGone(n) ? 'gone' : 'user'}${n}@${domains[n % domains.length]}`,
    reasonOf(n),
  ])
}

function isGone(n: number): boolean {
  return n % 4 === 3
}

export const TEXTS = ROWS.map(([text]) => text)
export const REASONS = ROWS.map(([, reason]) => reason)

/**
 * Replaces what kills may add. Each process asks a greylisting server about another random recipient,
 * so after several kills its accepted addresses may end without the catch-all test.
 */
export const withoutKills = (reasons: readonly (string | null | undefined)[]) =>
  reasons.map((reason, row) => {
    const isUntested = reason === 'low_deliverability' && TEXTS[row]?.endsWith('@grey.test')
    return isUntested ? 'accepted_email' : reason
  })

export const SCENARIO: Scenario = {
  roundTripMs: 20,
  mailboxes: ['user*'],
  domains: {
    ...Object.fromEntries(
      VANITIES.flatMap(name => [
        [name, { mx: [[10, `mx.${name}`]] as const }],
        [`mx.${name}`, { a: [VANITY_IP] }],
      ]),
    ),
    'grey.test': { mx: [[10, 'mx.grey.test']] },
    'backed.test': {
      mx: [
        [10, 'mx.down.test'],
        [20, 'mx.backup.test'],
      ],
    },
    'everyone.test': { mx: [[10, 'mx.everyone.test']] },
    'blocked.test': { mx: [[10, 'mx.blocked.test']] },
  },
  hosts: {
    'server.test': { behavior: 'polite', ip: VANITY_IP },
    'mx.grey.test': { behavior: 'greylist', seconds: 1 },
    'mx.down.test': { behavior: 'dead' },
    'mx.backup.test': { behavior: 'polite' },
    'mx.everyone.test': { behavior: 'catch-all' },
    'mx.blocked.test': { behavior: 'blocks-us' },
  },
}

const SESSIONS = 2
const RECIPIENTS = 10
/** Addresses that a process asks about at once: two connections with ten at five operators. */
export const IN_FLIGHT_MAX = SESSIONS * RECIPIENTS * 5

export const LIMITS = [
  ...['--sessions-per-operator', `${SESSIONS}`, '--recipients-per-session', `${RECIPIENTS}`],
  ...['--sessions-per-second', '1000', '--greylist-delay', '2'],
]

/** Waits until this many addresses of the list were asked about. */
export async function untilAsked(simulator: SimulatorProcess, addresses: number): Promise<void> {
  while (askedOf(await simulator.counters()).length < addresses) await setTimeout(10)
}

/** Number of questions beyond one about each address, or two where the server greylists. */
export const countRepeated = (counters: SimulatorCounters): number =>
  askedOf(counters).reduce(
    (sum, [to, times]) => sum + Math.max(0, times - (to.endsWith('@grey.test') ? 2 : 1)),
    0,
  )

const askedOf = ({ total }: SimulatorCounters) =>
  [...total.recipients].filter(([address]) => /^(user|gone)\d/.test(address))

/** Most connections at once to the vanity exchangers. */
export const vanityPeak = ({ hosts }: SimulatorCounters): number =>
  hosts['server.test']?.sessionsPeak ?? 0

/**
 * Waits until a job is finished. Requests fail while its service is down. The members of a cluster
 * remember an operator that blocks them: if a kill loses the result that reported it, its address waits
 * until the block is over, half an hour later. Such a job is told to finish without it.
 */
export async function untilCompleted(client: EvClient, jobId: string): Promise<void> {
  for (;;) {
    const job = await client.jobs.get(jobId).catch(() => null)
    if (job?.status === 'completed') return
    if (job !== null && isBlocked(job)) await client.jobs.finish(jobId)
    await setTimeout(100)
  }
}

type Progress = Awaited<ReturnType<EvClient['jobs']['get']>>

/** Whether a job waits for nothing but an operator that blocks the client. */
function isBlocked({ total_emails, processed_emails, waiting_for = [] }: Progress): boolean {
  const blocked = waiting_for.filter(({ reason }) => reason === 'refused')
  const emails = blocked.reduce((sum, one) => sum + one.emails, 0)
  return emails > 0 && processed_emails + emails === total_emails
}

/** Returns the reason of each row of a job; null without a result. */
export async function readReasons(client: EvClient, jobId: string): Promise<(string | null)[]> {
  const reasons: (string | null)[] = []
  for await (const { reason } of client.jobs.rows(jobId)) reasons.push(reason ?? null)
  return reasons
}
