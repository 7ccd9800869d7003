import { expect } from 'vitest'
import type { Target } from '../../src/engine/smtp/dial.ts'
import { type Clock, DAY, HOUR, MINUTE, SECOND, sleep } from '../../src/platform/clock.ts'
import { mail } from '../support/engine.ts'
import { HANG_UP, type MxSession, refused } from '../support/mx.ts'
import { knows, recipientOf, toRecipients } from '../support/recipients.ts'
import type { ZoneEntry } from '../support/zone.ts'
import type { Door, ListRequest, Verified } from './doors.ts'
import type { MailPlan } from './list-mail.ts'

/** A list with its correct results, and what its mail servers may be asked for them. */
export type ListScenario = ListRequest & {
  readonly name: string
  /** The reason of each row. */
  readonly reasons: readonly string[]
  /**
   * Number of RCPT commands about each address that is probed, or the most of them. Default: 1,
   * exactly.
   */
  readonly asks?: number | { readonly max: number }
  /** Number of random recipients of a domain, for one process. Default: 1. */
  readonly randomMax?: number
  /** Number of connections, for one process. */
  readonly connectionsMax: number
  /** Whether it waits for a minute or more, so that only doors with a fake clock can verify it. */
  readonly waits?: boolean
  /** What else holds, by the door that verified the list. */
  check?(verified: Verified, door: Door): void
}

/** A pause after a block takes half an hour. */
const BLOCK_MS = 20 * MINUTE
const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again later'
const BLOCKED = '554 5.7.1 Service unavailable; Client host blocked using bl.example'

/** Every fourth of these addresses is unknown. */
const people = (count: number, ...domains: readonly string[]) =>
  Array.from({ length: count }, (_, n) => {
    const domain = domains[n % domains.length]
    return `${isGone(n) ? 'gone' : 'user'}${n}@${domain}`
  })
const isGone = (n: number) => n % 4 === 3
const onlyUsers = (texts: readonly string[]) => texts.map(text => text.replace('gone', 'user'))

const truth = (text: string) => (text.startsWith('user') ? 'accepted_email' : 'rejected_email')

const answer = (recipient: string) => (recipient.startsWith('user') ? YES : NO)

/** Accepts `user…` and rejects all others as unknown. */
const polite = toRecipients(answer)

const d = (count: number) => Array.from({ length: count }, (_, n) => `d${n}.test`)

/** Domains with an exchanger each: 192.0.2.1, 192.0.2.2 … */
const separate = (...domains: readonly string[]): Record<string, ZoneEntry> =>
  Object.assign({}, ...domains.map((name, n) => mail(name, `192.0.2.${n + 1}`)))

/** Rejects each recipient the first time that it is asked. */
function greylisting() {
  const seen = new Set<string>()
  return toRecipients(recipient => {
    if (seen.has(recipient)) return answer(recipient)
    seen.add(recipient)
    return GREYLISTED
  })
}

/** Says for ten minutes that no one exists, after `max` unknown recipients. */
function harvestGuard(clock: Clock, max: number) {
  let count = 0
  let until = Number.NEGATIVE_INFINITY
  return toRecipients(recipient => {
    if (clock.now() < until) return NO
    if (answer(recipient) === YES) return YES
    count++
    if (count % max === 0) until = clock.now() + 10 * MINUTE
    return NO
  })
}

/** Takes `ms` for each reply to RCPT. */
const slow = (clock: Clock, ms: number) => async (line: string) => {
  const recipient = recipientOf(line)
  if (recipient === '') return undefined
  await sleep(clock, ms)
  return answer(recipient)
}

/** A server that serves two connections, and then none for a time, as a firewall that bans a client. */
const bansFor = (ms: number) => (clock: Clock) => {
  let count = 0
  let bannedAt = 0
  return {
    zone: separate('banning.test'),
    servers: () => ({
      connect: (to: Target) => {
        if (to.host !== 'mx.banning.test') return
        if (count === 2) bannedAt = clock.monotonicNow()
        if (++count > 2 && clock.monotonicNow() < bannedAt + ms) throw refused(to)
      },
      answer: polite,
    }),
  }
}

const plain = (texts: readonly string[], zone: Record<string, ZoneEntry>) => ({
  texts,
  reasons: texts.map(truth),
  mail: (): MailPlan => ({ zone, servers: () => polite }),
})

export const SCENARIOS: readonly ListScenario[] = [
  {
    name: 'of domains in turn needs one connection for each',
    ...plain(people(90, ...d(9)), separate(...d(9))),
    connectionsMax: 9,
  },
  {
    name: 'with duplicates and rows that need no mail server asks each address once',
    texts: [
      ...['user1@a.test', 'USER2@a.test', 'user1@A.test', 'nonsense', 'user1@a.test'],
      ...['user1@nowhere.test', 'user1@nomail.test', 'gone1@a.test', 'gone1@a.test'],
    ],
    reasons: [
      ...['accepted_email', 'accepted_email', 'accepted_email', 'invalid_email', 'accepted_email'],
      ...['invalid_domain', 'does_not_accept_mail', 'rejected_email', 'rejected_email'],
    ],
    mail: () => ({
      zone: { ...separate('a.test'), 'nomail.test': { MX: [[0, '']] } },
      servers: () => knows('user1', 'user2', 'USER2'),
    }),
    connectionsMax: 1,
  },
  {
    name: 'of catch-all domains asks one random recipient for each',
    texts: people(20, 'a.test', 'b.test'),
    reasons: Array(20).fill('catch_all'),
    mail: () => ({ zone: separate('a.test', 'b.test'), servers: () => () => undefined }),
    connectionsMax: 2,
  },
  {
    name: 'at a server that greylists is asked twice, also about the unknown recipients',
    ...plain(people(24, 'grey.test'), {}),
    mail: () => ({ zone: separate('grey.test'), servers: greylisting }),
    options: { greylistDelayMs: SECOND },
    asks: 2,
    randomMax: 2,
    connectionsMax: 8,
  },
  {
    name: 'at a server that always fails temporarily is unknown after three attempts',
    texts: people(5, 'busy.test'),
    reasons: Array(5).fill('unavailable_smtp'),
    mail: () => ({
      zone: separate('busy.test'),
      servers: () => toRecipients(() => '450 4.2.0 Mailbox busy, try again later'),
    }),
    options: { greylistDelayMs: SECOND },
    asks: 3,
    randomMax: 3,
    connectionsMax: 4,
    waits: true,
  },
  {
    name: 'whose exchangers are down is verified at the backup of another operator',
    ...plain(people(20, 'backed.test'), {}),
    mail: () => ({
      zone: {
        'backed.test': {
          MX: [
            [10, 'mx.down.test'],
            [20, 'mx.backup.example'],
          ],
        },
        'mx.down.test': { A: ['192.0.2.1'] },
        'mx.backup.example': { A: ['192.0.2.2'] },
      },
      servers: () => ({
        connect: to => {
          if (to.ip === '192.0.2.1') throw refused(to)
        },
        answer: polite,
      }),
    }),
    connectionsMax: 6,
  },
  {
    name: 'whose first exchanger rejects connections for now is verified at the second',
    ...plain(people(20, 'two.test'), {}),
    mail: () => ({
      zone: {
        'two.test': {
          MX: [
            [10, 'mx1.two.test'],
            [20, 'mx2.two.test'],
          ],
        },
        'mx1.two.test': { A: ['192.0.2.1'] },
        'mx2.two.test': { A: ['192.0.2.2'] },
      },
      servers: () => ({
        greeting: ({ to }) => (to.ip === '192.0.2.1' ? '450 4.3.2 Try another host' : undefined),
        answer: polite,
      }),
    }),
    connectionsMax: 6,
    waits: true,
  },
  {
    name: 'of which one domain has no reachable server has results for the others',
    texts: ['user1@down.test', ...people(20, 'a.test'), 'user2@down.test'],
    reasons: ['no_connect', ...people(20, 'a.test').map(truth), 'no_connect'],
    mail: () => ({
      zone: separate('a.test', 'down.test'),
      servers: () => ({
        connect: to => {
          if (to.host === 'mx.down.test') throw refused(to)
        },
        answer: polite,
      }),
    }),
    connectionsMax: 10,
    waits: true,
  },
  {
    name: 'at a server that refuses connections for ten minutes after it served some is continued',
    ...plain(people(60, 'banning.test'), {}),
    mail: bansFor(10 * MINUTE),
    options: { recipientsPerSession: 10 },
    // Two when the ban begins, and two every five minutes.
    connectionsMax: 9 + 2 * 3,
    waits: true,
    check({ mail }) {
      expect(mail.tookMs()).toBeGreaterThan(10 * MINUTE)
      expect(mail.tookMs()).toBeLessThan(20 * MINUTE)
    },
  },
  {
    name: 'at a server that restarts is continued, though no egress reaches it in that time',
    ...plain(people(60, 'banning.test'), {}),
    mail: bansFor(2 * MINUTE),
    options: { recipientsPerSession: 10, egresses: [{ name: 'a' }, { name: 'b' }] },
    // Two by each egress during the restart.
    connectionsMax: 9 + 2 * 2,
    waits: true,
  },
  {
    name: 'at a server that serves two connections and then no more ends after a quarter of an hour',
    texts: people(60, 'banning.test'),
    reasons: [],
    mail: bansFor(DAY),
    options: { recipientsPerSession: 10 },
    connectionsMax: 2 + 2 * 4,
    waits: true,
    check({ reasons, mail }) {
      const lost = reasons.filter(reason => reason === 'no_connect')
      expect(lost).toHaveLength(60 - mail.asked().size)
      expect(mail.asked().size).toBeGreaterThanOrEqual(18)
      expect(mail.tookMs()).toBeGreaterThanOrEqual(15 * MINUTE)
      expect(mail.tookMs()).toBeLessThan(20 * MINUTE)
    },
  },
  {
    name: 'at a server that refuses a second connection during the first one is verified over one',
    ...plain(people(60, 'narrow.test'), {}),
    mail: clock => {
      const served: MxSession[] = []
      return {
        zone: separate('narrow.test'),
        servers: () => ({
          connect: to => {
            const isServing = served.some(({ closed }) => !closed)
            if (to.host === 'mx.narrow.test' && isServing) throw refused(to)
          },
          greeting: session => void served.push(session),
          answer: slow(clock, SECOND),
        }),
      }
    },
    options: { recipientsPerSession: 10 },
    connectionsMax: 10,
    check({ mail }) {
      expect(mail.tookMs()).toBeLessThan(5 * MINUTE)
    },
  },
  {
    name: 'at an operator that blocks the client is unknown, and opens no connection after that',
    texts: [...people(5, 'blocking.test'), ...people(20, 'a.test')],
    reasons: [...Array(5).fill('probe_blocked'), ...people(20, 'a.test').map(truth)],
    mail: () => ({
      zone: separate('a.test', 'blocking.test'),
      servers: () => ({
        greeting: ({ to }) => (to.host === 'mx.blocking.test' ? BLOCKED : undefined),
        answer: polite,
      }),
    }),
    connectionsMax: 3,
  },
  {
    name: 'at an operator that blocks the client for twenty minutes is continued afterwards',
    texts: onlyUsers(people(40, 'blocking.test')),
    reasons: [],
    mail: clock => {
      const startedAt = clock.monotonicNow()
      return {
        zone: separate('blocking.test'),
        servers: () => ({
          greeting: () => (clock.monotonicNow() - startedAt < BLOCK_MS ? BLOCKED : undefined),
          answer: polite,
        }),
      }
    },
    options: { recipientsPerSession: 5 },
    // Two connections at first, one each half hour, and those of the verified addresses.
    connectionsMax: 2 + 2 + 8,
    waits: true,
    check({ reasons, mail }) {
      const blocked = reasons.filter(reason => reason === 'probe_blocked')
      expect(blocked.length).toBeLessThanOrEqual(4 * 5)
      const accepted = reasons.filter(reason => reason === 'accepted_email')
      expect(accepted).toHaveLength(40 - blocked.length)
      expect(mail.tookMs()).toBeGreaterThan(BLOCK_MS)
      expect(mail.tookMs()).toBeLessThan(2 * HOUR)
    },
  },
  {
    name: 'at an operator that asks for a pause is continued after it',
    ...plain([...people(10, 'tired.test'), ...people(10, 'a.test')], {}),
    mail: () => {
      let connections = 0
      return {
        zone: separate('a.test', 'tired.test'),
        servers: () => ({
          greeting: ({ to }) =>
            to.host === 'mx.tired.test' && connections++ === 0
              ? '421 4.7.0 Too many connections, try again later'
              : undefined,
          answer: polite,
        }),
      }
    },
    connectionsMax: 4,
    waits: true,
    check({ mail }) {
      expect(mail.tookMs()).toBeGreaterThan(10 * SECOND)
      expect(mail.tookMs()).toBeLessThan(10 * MINUTE)
    },
  },
  {
    name: 'never exceeds the connections and recipients that an operator allows',
    ...plain(people(100, 'slow.test'), {}),
    mail: clock => ({ zone: separate('slow.test'), servers: () => slow(clock, 10) }),
    options: { sessionsPerOperator: 3, recipientsPerSession: 10 },
    connectionsMax: 20,
    check({ mail }, { yieldsToRequests }) {
      expect(mail.peak('192.0.2.1')).toBeLessThanOrEqual(3)
      if (!yieldsToRequests) expect(mail.peak('192.0.2.1')).toBe(3)
      expect(recipientsMax(mail)).toBeLessThanOrEqual(11)
    },
  },
  {
    name: 'opens no more connections at once than the setting allows',
    ...plain(people(60, ...d(30)), separate(...d(30))),
    mail: clock => ({ zone: separate(...d(30)), servers: () => slow(clock, 10) }),
    options: { concurrency: 4 },
    connectionsMax: 30,
    check({ mail }, { members }) {
      expect(mail.openMax()).toBeLessThanOrEqual(4 * members)
    },
  },
  {
    name: 'of vanity exchangers on one IP address keeps the limits of one operator',
    // Without rejections: after three in a row, which depend on the order of the domains, the server
    // is asked again about a recipient that it has accepted.
    ...plain(onlyUsers(people(48, ...d(24))), {}),
    mail: clock => ({
      zone: Object.assign({}, ...d(24).map(name => mail(name, '192.0.2.80'))),
      servers: () => slow(clock, 10),
    }),
    options: { sessionsPerOperator: 2, sessionsPerSecond: 50 },
    connectionsMax: 24,
    check({ mail }, { members }) {
      expect(mail.peak('192.0.2.80')).toBeLessThanOrEqual(2 * members)
    },
  },
  {
    name: 'of vanity exchangers with a backup of another operator loses no row while it waits',
    ...plain(people(20, ...d(20)), {}),
    mail: () => ({
      zone: {
        ...Object.fromEntries(
          d(20).flatMap(name => [
            [
              name,
              {
                MX: [
                  [10, `mx.${name}`],
                  [20, 'mx.backup.example'],
                ],
              },
            ],
            [`mx.${name}`, { A: ['192.0.2.80'] }],
          ]),
        ),
        'mx.backup.example': { A: ['192.0.2.2'] },
      },
      servers: () => polite,
    }),
    options: { sessionsPerSecond: 2 },
    connectionsMax: 20,
    waits: true,
  },
  {
    name: 'with many refusals is shared by the connections that an operator allows',
    ...plain(people(60, 'a.test'), {}),
    mail: () => ({ zone: separate('a.test'), servers: () => polite }),
    options: { recipientsPerSession: 100, sessionsPerOperator: 5 },
    connectionsMax: 6,
  },
  {
    name: 'at a server with a limit of recipients per transaction asks about each once',
    ...plain(people(24, 'few.test'), {}),
    mail: () => ({
      zone: separate('few.test'),
      servers: () =>
        toRecipients((recipient, session) =>
          inTransaction(session) > 3 ? '452 4.5.3 Too many recipients' : answer(recipient),
        ),
    }),
    asks: { max: 3 },
    connectionsMax: 12,
    waits: true,
  },
  {
    name: 'at a server that hangs up after ten recipients has the results of the others too',
    ...plain(people(30, 'short.test'), {}),
    mail: () => ({
      zone: separate('short.test'),
      servers: () =>
        toRecipients((recipient, session) =>
          inConnection(session) > 10 ? HANG_UP : answer(recipient),
        ),
    }),
    asks: { max: 3 },
    randomMax: 4,
    connectionsMax: 12,
    waits: true,
  },
  {
    name: 'at a server without PIPELINING has the same results',
    ...plain(people(20, 'plain.test'), {}),
    mail: () => ({
      zone: separate('plain.test'),
      servers: () => line => (line.startsWith('EHLO') ? '250 mx.plain.test' : polite(line, NONE)),
    }),
    connectionsMax: 3,
  },
  {
    name: 'whose first operator asks for a pause is verified at the second',
    ...plain(people(20, 'both.test'), {}),
    mail: () => ({
      zone: {
        'both.test': {
          MX: [
            [10, 'mx.tired.test'],
            [20, 'mx.backup.example'],
          ],
        },
        'mx.tired.test': { A: ['192.0.2.1'] },
        'mx.backup.example': { A: ['192.0.2.2'] },
      },
      servers: () => ({
        greeting: ({ to }) =>
          to.ip === '192.0.2.1' ? '421 4.7.0 Too many connections, try again later' : undefined,
        answer: polite,
      }),
    }),
    connectionsMax: 4,
    waits: true,
  },
  {
    name: 'whose backup accepts everyone waits for the first exchanger',
    ...plain(people(10, 'returning.test'), {}),
    mail: clock => {
      const startedAt = clock.monotonicNow()
      return {
        zone: {
          'returning.test': {
            MX: [
              [10, 'mx.returning.test'],
              [20, 'mx.backup.example'],
            ],
          },
          'mx.returning.test': { A: ['192.0.2.1'] },
          'mx.backup.example': { A: ['192.0.2.2'] },
        },
        servers: () => ({
          connect: to => {
            const isDown = clock.monotonicNow() - startedAt < MINUTE
            if (to.ip === '192.0.2.1' && isDown) throw refused(to)
          },
          answer: (line, session) =>
            session.to.ip === '192.0.2.1' ? polite(line, session) : undefined,
        }),
      }
    },
    options: { greylistDelayMs: 5 * MINUTE },
    asks: 2,
    randomMax: 2,
    connectionsMax: 6,
    waits: true,
  },
  {
    name: 'whose domain moves while it waits is verified at its new mail server',
    ...plain(people(20, 'moving.test'), {}),
    mail: () => ({
      zone: { ...separate('moving.test'), 'mx.new.example': { A: ['192.0.2.2'] } },
      later: { afterMs: 5 * MINUTE, zone: { 'moving.test': { MX: [[10, 'mx.new.example']] } } },
      servers: () => (line, session) =>
        session.to.ip === '192.0.2.1'
          ? toRecipients(() => GREYLISTED)(line, session)
          : polite(line, session),
    }),
    asks: { max: 5 },
    randomMax: 4,
    connectionsMax: 12,
    waits: true,
  },
  {
    name: 'whose domain has no DNS answer is unknown, and the others are verified',
    texts: ['user1@servfail.test', ...people(20, 'a.test')],
    reasons: ['dns_error', ...people(20, 'a.test').map(truth)],
    mail: () => ({
      zone: { ...separate('a.test'), 'servfail.test': 'server' },
      servers: () => polite,
    }),
    connectionsMax: 3,
    waits: true,
  },
  {
    name: 'whose DNS fails for a minute is verified after it, and looked up three times at most',
    texts: [...people(6, 'mx.test', 'host.test', 'a.test'), 'user1@never.test', 'user2@never.test'],
    reasons: [...people(6).map(truth), 'dns_error', 'dns_error'],
    mail: () => ({
      zone: {
        ...separate('mx.test', 'host.test', 'a.test'),
        'mx.test': 'server',
        'mx.host.test': 'timeout',
        'never.test': 'timeout',
      },
      later: {
        afterMs: MINUTE + 10 * SECOND,
        zone: { 'mx.test': { MX: [[10, 'mx.mx.test']] }, 'mx.host.test': { A: ['192.0.2.2'] } },
      },
      servers: () => polite,
    }),
    // The first retry of mx.host.test does not wait for the second, because all rows are routed.
    connectionsMax: 4,
    waits: true,
    check({ mail }) {
      const questions = mail.questions()
      const counts = ['MX mx.test', 'A mx.host.test', 'MX never.test']
      expect(counts.map(question => [question, questions.get(question)])).toEqual(
        counts.map(question => [question, 3]),
      )
    },
  },
  {
    name: 'with many unknown recipients in a row pauses, and asks about each once',
    ...plain(
      people(60, 'a.test').map(text => text.replace('user', 'gone')),
      {},
    ),
    mail: () => ({ zone: separate('a.test'), servers: () => polite }),
    randomMax: 0,
    // A connection ends after eight refusals.
    connectionsMax: 14,
    waits: true,
    check({ mail }) {
      expect(mail.tookMs()).toBeGreaterThan(20 * SECOND)
      expect(mail.tookMs()).toBeLessThan(5 * MINUTE)
    },
  },
  {
    name: 'at a server that rejects everyone after ten unknown recipients is verified in its pauses',
    ...plain(people(48, 'a.test'), {}),
    mail: clock => ({ zone: separate('a.test'), servers: () => harvestGuard(clock, 10) }),
    // One of them after each pause.
    asks: { max: 8 },
    connectionsMax: 40,
    waits: true,
  },
  {
    name: 'of which a server loses a reply is verified again over another connection',
    ...plain(people(12, 'lossy.test'), {}),
    mail: () => {
      let isLost = false
      return {
        zone: separate('lossy.test'),
        servers: () =>
          toRecipients(recipient => {
            if (isLost || !recipient.startsWith('user4')) return answer(recipient)
            isLost = true
            return null
          }),
      }
    },
    asks: { max: 2 },
    randomMax: 2,
    connectionsMax: 5,
    waits: true,
  },
  {
    name: 'at an operator that blocks one egress is verified by the other',
    ...plain(people(30, 'a.test'), {}),
    mail: () => ({
      zone: separate('a.test'),
      servers: egress =>
        egress === 'a' ? { greeting: BLOCKED, answer: polite } : { answer: polite },
    }),
    options: { egresses: [{ name: 'a' }, { name: 'b' }], recipientsPerSession: 10 },
    connectionsMax: 8,
    check({ mail }, { members }) {
      expect(mail.sessionsOf('a').length).toBeGreaterThan(0)
      expect(mail.sessionsOf('a').length).toBeLessThanOrEqual(2 * members)
    },
  },
  {
    name: 'at a server that greylists each egress is retried by the one that was greylisted',
    ...plain(people(60, 'grey.test'), {}),
    mail: () => ({ zone: separate('grey.test'), servers: greylisting }),
    options: {
      egresses: [{ name: 'a' }, { name: 'b' }],
      recipientsPerSession: 10,
      greylistDelayMs: SECOND,
      operators: { 'grey.test': { sessionsPerOperator: 2 } },
    },
    asks: 2,
    randomMax: 4,
    connectionsMax: 24,
    check({ mail }) {
      for (const egress of ['a', 'b']) {
        expect(mail.sessionsOf(egress).length, egress).toBeGreaterThan(0)
      }
    },
  },
]

/**
 * In process, `ev bulk` verifies half of the lists and HTTP the other half; the slow tests swap them.
 * `verifyMany` verifies all.
 */
export const HALVES = [0, 1].map(rest => SCENARIOS.filter((_, n) => n % 2 === rest))

const toList = (texts: readonly string[]) => ({ texts, reasons: texts.map(truth) })

/** A long and a short list at one operator, which allows two connections. */
export const LISTS_AT_ONE_OPERATOR = {
  long: toList(people(120, 'one.test')),
  short: toList(people(8, 'one.test').map(text => text.replace(/\d/, 'er$&'))),
  request: {
    texts: [],
    mail: (clock: Clock): MailPlan => ({
      zone: separate('one.test'),
      servers: () => slow(clock, 30),
    }),
    options: { sessionsPerOperator: 2, recipientsPerSession: 5 },
  },
}

/**
 * Two lists at a server that rejects everyone for half an hour after the first one, which had many
 * unknown recipients.
 */
export const BANNED_LISTS = {
  first: toList(people(40, 'one.test')),
  second: toList(onlyUsers(people(60, 'one.test')).slice(40)),
  request: {
    texts: [],
    mail: (clock: Clock): MailPlan => {
      let refusals = 0
      let until = 0
      return {
        zone: separate('one.test'),
        servers: () =>
          toRecipients(recipient => {
            if (clock.now() < until) return NO
            const reply = answer(recipient)
            if (recipient.startsWith('gone')) refusals++
            if (refusals === 10 && until === 0) until = clock.now() + 30 * MINUTE
            return reply
          }),
      }
    },
  },
}

const MIXED_DOMAINS = d(5)
const MIXED_ROWS = [
  ...people(60, ...MIXED_DOMAINS),
  ...people(10, 'grey.test'),
  ...people(10, 'backed.test'),
].map(text => [text, truth(text)] as const)

/**
 * A list that takes every way through a probe: accepted, rejected and greylisted addresses, a backup
 * exchanger at another operator, vanity exchangers at one IP address, and rows that need no server.
 * It takes seconds, so that tests can interrupt it.
 */
export const MIXED_LIST: ListRequest & Pick<ListScenario, 'reasons'> = {
  texts: [...MIXED_ROWS.map(([text]) => text), 'user1@absent.test', 'nonsense'],
  reasons: [...MIXED_ROWS.map(([, reason]) => reason), 'invalid_domain', 'invalid_email'],
  mail: clock => {
    const toGrey = new Map<string, ReturnType<typeof greylisting>>()
    return {
      zone: {
        ...Object.assign({}, ...MIXED_DOMAINS.map(name => mail(name, '192.0.2.80'))),
        ...mail('grey.test', '192.0.2.2'),
        'backed.test': {
          MX: [
            [10, 'mx.down.test'],
            [20, 'mx.backup.example'],
          ],
        },
        'mx.down.test': { A: ['192.0.2.3'] },
        'mx.backup.example': { A: ['192.0.2.4'] },
      },
      servers: egress => {
        // The server remembers its clients while ev restarts.
        const answerGrey = toGrey.get(egress) ?? greylisting()
        toGrey.set(egress, answerGrey)
        const answerSlowly = slow(clock, 30)
        return {
          connect: to => {
            if (to.ip === '192.0.2.3') throw refused(to)
          },
          answer: (line, session) =>
            session.to.ip === '192.0.2.2' ? answerGrey(line, session) : answerSlowly(line),
        }
      },
    }
  },
  options: {
    sessionsPerOperator: 2,
    recipientsPerSession: 5,
    sessionsPerSecond: 50,
    greylistDelayMs: SECOND,
  },
}

const NONE = {} as MxSession

const inTransaction = ({ lines }: MxSession): number =>
  lines.slice(lines.findLastIndex(line => line.startsWith('MAIL'))).filter(isRecipient).length

const inConnection = ({ lines }: MxSession): number => lines.filter(isRecipient).length

const isRecipient = (line: string) => line.startsWith('RCPT')

const recipientsMax = ({ sessions }: Verified['mail']) => Math.max(...sessions().map(inConnection))

const ALLOWED = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'NOOP', 'QUIT']

/** Checks what holds for every list. */
export function checkVerified(scenario: ListScenario, verified: Verified, door: Door): void {
  const { mail, reasons } = verified
  const { texts, asks = 1, randomMax = 1, waits = false } = scenario
  expect(reasons).toHaveLength(texts.length)
  if (scenario.reasons.length > 0) expect(reasons).toEqual(scenario.reasons)
  const asked = mail.asked()
  const isWrong = (times: number) => (typeof asks === 'number' ? times !== asks : times > asks.max)
  expect([...asked].filter(([, times]) => isWrong(times))).toEqual([])
  const randomLimit = randomMax * door.members
  expect([...mail.randomAsked()].filter(([, times]) => times > randomLimit)).toEqual([])
  // A domain is asked again for the retries after ten minutes, and its exchangers after minutes.
  const questions = [...mail.questions()].filter(([one]) => !waits || one.startsWith('MX '))
  const questionsMax = (waits ? 3 : 1) * door.members
  expect(questions.filter(([, times]) => times > questionsMax)).toEqual([])
  // Requests go before the rows of a service in real time, in which the clock may advance.
  const slack = door.yieldsToRequests ? 1.5 : 1
  const connectionsMax = Math.ceil(scenario.connectionsMax * slack) * door.members
  expect(mail.dialled.length).toBeLessThanOrEqual(connectionsMax)
  expect(mail.open()).toBe(0)
  const verbs = new Set(mail.sessions().flatMap(({ lines }) => lines.map(verbOf)))
  expect([...verbs].filter(verb => !ALLOWED.includes(verb))).toEqual([])
  scenario.check?.(verified, door)
}

const verbOf = (line: string) => line.split(/[ :]/, 1)[0] ?? ''
