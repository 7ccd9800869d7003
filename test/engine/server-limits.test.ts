import { expect, test } from 'vitest'
import type { Result } from '../../src/index.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine, mail } from '../support/engine.ts'
import { HANG_UP, type MxSays, type MxScript, type MxSession } from '../support/mx.ts'
import {
  answerRcpt,
  isMissing,
  isRandomRecipient,
  isRcpt,
  recipientOf,
  recipientsOf,
  replyToRcpt,
  usersAndGone,
} from '../support/recipients.ts'
import { remoteDial } from '../support/remote.ts'

/** Says this to each further recipient of a connection after `max` of them, or of the refused ones. */
const limited = (max: number, reply: MxSays, counts = isRcpt): MxScript => ({
  answer: (line, { lines }) => {
    if (!isRcpt(line)) return undefined
    return lines.filter(one => isRcpt(one) && counts(one)).length > max ? reply : replyToRcpt(line)
  },
})

const ADDRESSES = usersAndGone(200)

/** Verifies the list, and returns its reasons, its time and its number of connections. */
async function verifyList(script: (now: () => number) => MxScript) {
  let now = () => 0
  const { many, clock, mx } = createTestEngine({ script: script(() => now()) })
  now = () => clock.now()
  const startedAt = now()
  const reasons = (await many(ADDRESSES)).map(({ verdict }) => verdict.reason)
  const count = (reason: string) => reasons.filter(one => one === reason).length
  return {
    accepted: count('accepted_email'),
    rejected: count('rejected_email'),
    minutes: (now() - startedAt) / MINUTE,
    connections: mx.lines().filter(line => line.startsWith('EHLO')).length,
  }
}

// Haraka, Postfix after too many errors, Exim with a limit of failed recipients (cPanel).
test.each([
  ['five recipients', 5, '450 4.7.1 Too many recipient attempts', isRcpt, 45],
  ['five recipients', 5, '421 4.7.0 mx.a.test Error: too many errors', isRcpt, 45],
  ['one recipient', 1, '450 4.7.1 Too many recipient attempts', isRcpt, 205],
  ['one recipient', 1, HANG_UP, isRcpt, 205],
  ['five recipients', 5, '451 busy, try later', isRcpt, 45],
  ['three recipients', 3, null, isRcpt, 75],
  ['three recipients', 3, HANG_UP, isRcpt, 75],
  ['three refusals', 3, '421 4.7.0 mx.a.test Error: too many errors', isMissing, 32],
  ['four refusals', 4, '550 Too many failed recipients', isMissing, 25],
] as const)(
  'a list is verified to its end at a server that takes %s per connection: %i, %s',
  async (_, max, reply, counts, connectionsMax) => {
    const { minutes, connections, ...results } = await verifyList(() => limited(max, reply, counts))
    expect(results).toEqual({ accepted: 160, rejected: 40 })
    // A pause or two, until the limit is known.
    expect(minutes).toBeLessThan(16)
    expect(connections).toBeLessThanOrEqual(connectionsMax)
  },
)

test.each<[string, MxSays]>([
  ['silence', null],
  ['a close', HANG_UP],
])(
  'a list tests few times whether a server is a catch-all that answers with %s',
  async (_, says) => {
    const domains = Array.from({ length: 40 }, (_, n) => `d${n}.test`)
    const { many, clock, mx } = createTestEngine({
      zone: {
        ...Object.fromEntries(domains.map(domain => [domain, { MX: [[10, 'mx.hoster.test']] }])),
        'mx.hoster.test': { A: ['192.0.2.9'] },
      },
      script: {
        answer: (line, { lines }) =>
          lines.some(one => isRandomRecipient(recipientOf(one))) ? says : answerRcpt(line),
      },
    })
    const names = ['user1', 'user2', 'gone3', 'user4', 'user5']
    const startedAt = clock.now()
    const results = await many(domains.flatMap(domain => names.map(name => `${name}@${domain}`)))
    const accepted = results.filter(({ verdict }) => verdict.reason === 'low_deliverability')
    expect(accepted).toHaveLength(160)
    expect(results.filter(({ verdict }) => verdict.reason === 'rejected_email')).toHaveLength(40)
    expect(clock.now() - startedAt).toBeLessThan(15 * MINUTE)
    const recipients = recipientsOf(mx.lines())
    expect(recipients.filter(isRandomRecipient).length).toBeLessThan(20)
    expect(recipients.length).toBeLessThan(240)
  },
)

test.each<[string, string, MxSays]>([
  ['gone0', 'says nothing', null],
  ['user99', 'says nothing', null],
  ['gone0', 'closes the connection', HANG_UP],
  ['user99', 'closes the connection', HANG_UP],
])('a server that at %s %s answers all others', async (name, _, says) => {
  const { many, mx } = createTestEngine({
    script: {
      answer: (line, { lines }) =>
        lines.some(one => recipientOf(one) === `${name}@a.test`) ? says : answerRcpt(line),
    },
  })
  const reasons = new Map((await many(ADDRESSES)).map(one => [one.email, one.verdict.reason]))
  expect(reasons.get(`${name}@a.test`)).toBe(says === null ? 'timeout' : 'unavailable_smtp')
  reasons.delete(`${name}@a.test`)
  const answered = [...reasons.values()].filter(one => /^(?:accepted|rejected)_email$/.test(one))
  expect(answered).toHaveLength(199)
  expect(recipientsOf(mx.lines()).length).toBeLessThan(225)
})

test('a server that is silent at every recipient is given up after a few', async () => {
  const { many, clock, mx } = createTestEngine({
    script: line => (isRcpt(line) ? null : undefined),
  })
  const startedAt = clock.now()
  const reasons = new Set((await many(ADDRESSES)).map(({ verdict }) => verdict.reason))
  expect(reasons).toEqual(new Set(['timeout']))
  expect(mx.sessions.length).toBeLessThanOrEqual(5)
  expect(clock.now() - startedAt).toBeLessThanOrEqual(6 * MINUTE)
})

test('a limit of recipients per minute does not count as one of connections', async () => {
  const { accepted, rejected, connections } = await verifyList(now => {
    let times: number[] = []
    return {
      answer: line => {
        if (!isRcpt(line)) return undefined
        times = times.filter(at => at > now() - MINUTE)
        if (times.length >= 30) return '450 4.7.1 Error: too many recipients from 192.0.2.1'
        times.push(now())
        return replyToRcpt(line)
      },
    }
  })
  expect({ accepted, rejected }).toEqual({ accepted: 160, rejected: 40 })
  expect(connections).toBeLessThan(20)
})

test('a list goes on at the moment at which the block of its domain ends', async () => {
  const { minutes, accepted, rejected, connections } = await verifyList(() =>
    limited(5, '550 5.7.1 Message rejected due to policy'),
  )
  // A recipient that was blocked itself keeps this result; only the others are retried.
  expect({ accepted, rejected, connections }).toEqual({
    accepted: 69,
    rejected: 17,
    connections: 18,
  })
  expect(Math.floor(minutes)).toBe(16 * 30)
})

// Exim counts with `strict` also what it defers, and the admin writes the text.
test.each([
  [30, '451 Sender rate 31.0 / 1m'],
  [30, '451 Host is ratelimited (31.0/1m max:30)'],
  [30, '451 busy, try later'],
  [20, '451 Sender rate 21.0 / 1m'],
  [60, '451 Sender rate 61.0 / 1m'],
])('recipients beyond a rate of %i are not named before a pause: %s', async (max, reply) => {
  const { accepted, rejected, connections } = await verifyList(now => {
    let times: number[] = []
    return {
      answer: line => {
        if (!isRcpt(line)) return undefined
        times = [...times.filter(at => at > now() - MINUTE), now()]
        return times.length > max ? reply : replyToRcpt(line)
      },
    }
  })
  expect({ accepted, rejected }).toEqual({ accepted: 160, rejected: 40 })
  expect(connections).toBeLessThan(30)
})

test('a limit of TLS sessions per minute is a pause, and no demand for TLS that cannot be met', async () => {
  const { accepted, rejected, minutes } = await verifyList(now => {
    let times: number[] = []
    return {
      answer: (line, { lines }) => {
        if (line.startsWith('EHLO')) return '250-mx.a.test\n250-PIPELINING\n250 STARTTLS'
        if (line === 'STARTTLS') {
          times = times.filter(at => at > now() - MINUTE)
          if (times.length >= 2)
            return '454 4.7.0 Error: too many new TLS sessions from [192.0.2.1]'
          times.push(now())
          return '220 2.0.0 Ready to start TLS'
        }
        const isSecured = lines.filter(one => one.startsWith('EHLO')).length > 1
        // Postfix counts each command in clear text as an error, and closes after twenty.
        if (line.startsWith('MAIL') && !isSecured && lines.includes('STARTTLS')) return HANG_UP
        if (line.startsWith('MAIL') && !isSecured)
          return '530 5.7.0 Must issue a STARTTLS command first'
        return answerRcpt(line)
      },
    }
  })
  expect({ accepted, rejected }).toEqual({ accepted: 160, rejected: 40 })
  expect(minutes).toBeLessThan(60)
})

test('a server that greylists some recipients has no limit, and is asked one time more', async () => {
  const greylisted = new Map<string, number>()
  let recipients = 0
  const { accepted, rejected, minutes, connections } = await verifyList(now => ({
    answer: line => {
      if (!isRcpt(line)) return undefined
      recipients++
      const to = recipientOf(line)
      if (/[02468]@/.test(to)) return replyToRcpt(line)
      const since = greylisted.get(to) ?? now()
      greylisted.set(to, since)
      return now() - since < 4 * MINUTE ? '451 4.7.1 Please try again later' : replyToRcpt(line)
    },
  }))
  expect({ accepted, rejected }).toEqual({ accepted: 160, rejected: 40 })
  expect(recipients).toBeLessThan(300 + 30)
  expect(connections).toBeLessThan(33)
  expect(minutes).toBeLessThan(6)
})

const TOO_MANY_TLS = '421 4.7.0 mx.a.test Error: too many new TLS sessions from [192.0.2.1]'
// Postfix performs the handshake, then says 421, which the reset of the connection may overtake.
test.each<[string, number, (session: MxSession) => MxSays]>([
  ['421 from the first one on', 0, () => TOO_MANY_TLS],
  ['421', 2, () => TOO_MANY_TLS],
  ['a close', 2, () => HANG_UP],
  [
    'a reset',
    2,
    ({ reset }) => {
      reset()
      return null
    },
  ],
])(
  'TLS sessions beyond a rate that end after the handshake are a pause: %s',
  async (_, max, end) => {
    const { accepted, rejected, minutes } = await verifyList(now => {
      let firstAt: number | null = null
      let times: number[] = []
      let isOver = false
      const over = new Set<MxSession>()
      return {
        secure: () => {
          firstAt ??= now()
          times = [...times.filter(at => at > now() - MINUTE), now()]
          isOver = times.length > (now() - firstAt < MINUTE ? max : 2)
        },
        answer: (line, session) => {
          const isSecured = session.lines.includes('STARTTLS')
          if (line.startsWith('EHLO') && !isSecured)
            return '250-mx.a.test\n250-PIPELINING\n250 STARTTLS'
          if (line.startsWith('EHLO') && isOver) over.add(session)
          if (over.has(session)) return end(session)
          if (line === 'STARTTLS') return '220 2.0.0 Ready to start TLS'
          if (line.startsWith('MAIL') && !isSecured)
            return '530 5.7.0 Must issue a STARTTLS command first'
          return answerRcpt(line)
        },
      }
    })
    expect({ accepted, rejected }).toEqual({ accepted: 160, rejected: 40 })
    expect(minutes).toBeLessThan(60)
  },
)

/** Says that no one exists, for ten minutes after `max` unknown recipients, or to the connection. */
const harvestGuard =
  (max: number, scope: 'connection' | 'client') =>
  (now: () => number): MxScript => {
    let times: number[] = []
    let until = 0
    return {
      answer: (line, { lines }) => {
        if (!isRcpt(line)) return undefined
        const before = lines.slice(0, -1).filter(one => isRcpt(one) && isMissing(one)).length
        const isGuarding = scope === 'connection' ? before >= max : now() < until
        if (isGuarding) return '550 5.1.1 No such user'
        if (isMissing(line)) times = [...times.filter(at => at > now() - 10 * MINUTE), now()]
        if (times.length >= max) {
          until = now() + 10 * MINUTE
          times = []
        }
        return replyToRcpt(line)
      },
    }
  }

test.each([
  [2, 'connection', 60],
  [5, 'connection', 25],
  [5, 'client', 70],
  [8, 'client', 60],
] as const)(
  'a server that rejects everyone after %i unknown recipients of a %s rejects no mailbox that exists',
  async (max, scope, connectionsMax) => {
    const { connections, minutes: _, ...results } = await verifyList(harvestGuard(max, scope))
    expect(results).toEqual({ accepted: 160, rejected: 40 })
    expect(connections).toBeLessThan(connectionsMax)
  },
)

test.each([
  [
    't1.mail.protection.outlook.com',
    't2.mail.protection.outlook.com',
    'Recipient address rejected: Access denied',
  ],
  ['t1.filter.test', 't2.filter.test', 'Relay access denied'],
])(
  'hosts of two customers on one address, %s and %s, are not one server if each serves its own domain only',
  async (one, two, reply) => {
    const { many, clock } = createTestEngine({
      zone: {
        'a1.test': { MX: [[10, one]] },
        'a2.test': { MX: [[10, two]] },
        [one]: { A: ['192.0.2.1'] },
        [two]: { A: ['192.0.2.1'] },
      },
      script: {
        answer: (line, { to }) => {
          const isOther = line.includes(to.host === one ? 'a2.test' : 'a1.test')
          return isRcpt(line) && isOther ? `550 5.4.1 ${reply}` : answerRcpt(line)
        },
      },
    })
    const startedAt = clock.now()
    await many(['user1@a1.test'])
    const results = await many(['gone1@a2.test', 'gone2@a2.test', 'gone3@a2.test', 'gone4@a2.test'])
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(4).fill('rejected_email'))
    expect(clock.now() - startedAt).toBeLessThan(MINUTE)
  },
)

test('a connection that is closed after rejections makes the next one ask first', async () => {
  const { accepted, connections } = await verifyList(now => {
    const { answer } = harvestGuard(8, 'client')(now)
    return {
      answer: (line, session) => {
        const taken = session.lines.filter(isRcpt).length
        return isRcpt(line) && taken > 6 ? '421 4.7.0 Closing' : answer?.(line, session)
      },
    }
  })
  // Those of the connections in which it began cannot be known.
  expect(accepted).toBeGreaterThan(140)
  expect(connections).toBeLessThan(90)
})

test('a server with a name for each domain that rejects everyone is one server', async () => {
  const domains = Array.from({ length: 60 }, (_, n) => `d${n}.test`)
  let now = () => 0
  const { many, clock, mx } = createTestEngine({
    script: harvestGuard(30, 'client')(() => now()),
    zone: Object.assign({}, ...domains.map(domain => mail(domain, '192.0.2.7'))),
  })
  now = () => clock.now()
  const results = await many(
    domains.flatMap((domain, n) => [`user1@${domain}`, `${n % 2 ? 'gone' : 'user'}2@${domain}`]),
  )
  const accepted = results.filter(({ verdict }) => verdict.reason === 'accepted_email')
  const rejected = results.filter(({ verdict }) => verdict.reason === 'rejected_email')
  expect([accepted.length, rejected.length]).toEqual([90, 30])
  expect(rejected.every(({ email }) => email.startsWith('gone'))).toBe(true)
  // One for each domain, and one after each pause.
  expect(mx.sessions.length).toBeLessThan(80)
})

const TWO_EQUAL_HOSTS = {
  'two.test': {
    MX: [
      [10, 'mx1.two.test'],
      [10, 'mx2.two.test'],
    ] as [number, string][],
  },
  'mx1.two.test': { A: ['192.0.2.1'] },
  'mx2.two.test': { A: ['192.0.2.2'] },
}
const AT_TWO_HOSTS = ADDRESSES.map(address => address.replace('a.test', 'two.test'))

const rejectedUsers = (results: readonly Result[]) =>
  results.filter(
    ({ email, verdict }) => email.startsWith('user') && verdict.class === 'undeliverable',
  )

test('rejections by one of two equal hosts that rejects everyone do not count', async () => {
  const { many, recipients, clock } = createTestEngine({
    zone: TWO_EQUAL_HOSTS,
    script: {
      answer: (line, { to }) =>
        isRcpt(line) && to.ip === '192.0.2.2' ? '550 5.7.1 Relaying denied' : answerRcpt(line),
    },
  })
  const startedAt = clock.now()
  const results = await many(AT_TWO_HOSTS)
  expect(rejectedUsers(results)).toEqual([])
  expect(results.filter(({ verdict }) => verdict.class === 'undeliverable')).toHaveLength(40)
  expect(clock.now() - startedAt).toBeLessThan(MINUTE)
  expect(recipients().length).toBeLessThan(220)
})

test.each([5, 10, 20])(
  'two equal hosts that reject everyone after %i unknown recipients reject no mailbox that exists',
  async max => {
    let now = () => 0
    const { many, clock } = createTestEngine({
      zone: TWO_EQUAL_HOSTS,
      script: harvestGuard(max, 'client')(() => now()),
    })
    now = () => clock.now()
    expect(rejectedUsers(await many(AT_TWO_HOSTS))).toEqual([])
  },
)

test.each(['550 5.1.1 No such user', '550 5.7.1 Relaying denied'])(
  'a mailbox is unknown at a server that accepts some and then says to everyone: %s',
  async reply => {
    let asked = 0
    const { many } = createTestEngine({
      script: { answer: line => (isRcpt(line) && ++asked > 30 ? reply : answerRcpt(line)) },
    })
    const users = (await many(ADDRESSES)).filter(({ email }) => email.startsWith('user'))
    const reasons = new Set(users.map(({ verdict }) => verdict.reason))
    expect(reasons).toEqual(new Set(['accepted_email', 'unavailable_smtp']))
  },
)

test('a single verification after such a server has rejected everyone is unknown', async () => {
  let now = () => 0
  const { reason, clock } = createTestEngine({
    script: harvestGuard(4, 'client')(() => now()),
  })
  now = () => clock.now()
  const reasons = []
  for (const name of ['user1', 'gone1', 'gone2', 'gone3', 'user2', 'user1'])
    reasons.push(await reason(`${name}@a.test`, { forceRefresh: true }))
  expect(reasons).toEqual([
    'accepted_email',
    ...Array(3).fill('rejected_email'),
    ...Array(2).fill('unavailable_smtp'),
  ])
  await clock.advance(15 * MINUTE)
  expect(await reason('user2@a.test')).toBe('accepted_email')
})

test.each([
  [2, 205],
  [10, 230],
])(
  'a list with one recipient in %i that exists costs few repeated ones at any other server',
  async (every, recipientsMax) => {
    const { many, mx } = createTestEngine({ script: { answer: answerRcpt } })
    const names = Array.from({ length: 200 }, (_, n) => `${n % every === 0 ? 'user' : 'gone'}${n}`)
    const results = await many(names.map(name => `${name}@a.test`))
    const accepted = results.filter(({ verdict }) => verdict.reason === 'accepted_email')
    expect(accepted).toHaveLength(200 / every)
    expect(mx.lines().filter(isRcpt).length).toBeLessThanOrEqual(recipientsMax)
  },
)

test('rejections at the end of a connection are repeated over the next one if nothing shows that they count', async () => {
  const { many, mx } = createTestEngine({ script: { answer: answerRcpt } })
  await many(Array.from({ length: 60 }, (_, n) => `user${n}@a.test`))
  const before = mx.sessions.length
  const list = [...Array(16).fill('user'), 'gone', 'gone', 'gone'].map(
    (name, n) => `${name}9${n}@a.test`,
  )
  const results = await many(list)
  expect(results.map(({ verdict }) => verdict.reason).toSorted()).toEqual([
    ...Array(16).fill('accepted_email'),
    ...Array(3).fill('rejected_email'),
  ])
  const [first, second, ...more] = mx.sessions.slice(before).map(({ lines }) => recipientsOf(lines))
  expect(more).toEqual([])
  expect(first?.slice(-3)).toEqual(list.slice(-3))
  // With the one that was accepted last.
  expect(second).toEqual([...list.slice(-3), list[15]])
})

test('a list with few rejections takes no round trip for a check of the server', async () => {
  const { many, clock, mx } = createTestEngine({
    script: { answer: answerRcpt },
    dial: (near, time) => remoteDial(near, time, 100),
  })
  const startedAt = clock.now()
  const names = Array.from({ length: 400 }, (_, n) => `${n % 20 === 0 ? 'gone' : 'user'}${n}`)
  await many(names.map(name => `${name}@a.test`))
  // One recipient is random, and each connection sends QUIT with its last recipients.
  expect(mx.lines().filter(isRcpt)).toHaveLength(401)
  expect(clock.now() - startedAt).toBeLessThanOrEqual(4_600)
})
