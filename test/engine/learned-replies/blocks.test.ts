import { describe, expect, test } from 'vitest'
import { createTestEngine, toRecipients } from '../../support/engine.ts'
import type { MxSession } from '../../support/mx.ts'
import { runs } from '../../support/property.ts'
import { xorshift } from '../../support/random.ts'

// A server that refuses missing mailboxes with the same words as blocked clients, which no rule
// knows: no existing mailbox may end as rejected, whatever the server blocks and when.

const REFUSED = '550 5.7.1 Ei onnistu'
const EXISTING = Array.from({ length: 12 }, (_, n) => `user${n}@a.test`)
const OTHERS = ['x0@a.test', 'x1@a.test', 'x2@a.test', 'postmaster@a.test']

const exists = (to: string) => /^(?:user\d+|postmaster)@/.test(to)

/** What the server has seen so far, this recipient included. */
type Seen = {
  readonly to: string
  /** From 0. */
  readonly connection: number
  readonly asked: number
  readonly askedHere: number
  readonly askedInTransaction: number
  readonly unknown: number
  readonly unknownHere: number
  /** How often this recipient was asked. */
  readonly times: number
}

type Block = readonly [name: string, isRefused: (seen: Seen) => boolean]

const BLOCKS: readonly Block[] = [
  ...[0, 1, 2, 3, 5, 7, 9, 12].flatMap((n): Block[] => [
    [`each connection after ${n} recipients`, seen => seen.askedHere > n],
    [`each transaction after ${n} recipients`, seen => seen.askedInTransaction > n],
    [`the client after ${n} recipients`, seen => seen.asked > n],
    [`each connection after ${n} missing mailboxes`, seen => seen.unknownHere > n],
    [`the client after ${n} missing mailboxes`, seen => seen.unknown > n],
  ]),
  ...[0, 1, 2, 3, 4, 5].map(
    (n): Block => [`the client after ${n} connections`, seen => seen.connection >= n],
  ),
  ...[1, 2, 3, 4].map((n): Block => [`${n} attempts of each recipient`, seen => seen.times <= n]),
  ['all but postmaster', seen => !seen.to.startsWith('postmaster@')],
]

function createBlocking([, isRefused]: Block) {
  const asked: { readonly to: string; readonly session: MxSession }[] = []
  return createTestEngine({
    script: toRecipients((to, session) => {
      asked.push({ to, session })
      const here = asked.filter(one => one.session === session)
      const countUnknown = (all: typeof asked) => all.filter(one => !exists(one.to)).length
      const seen: Seen = {
        to,
        connection: session.number,
        asked: asked.length,
        askedHere: here.length,
        askedInTransaction: session.lines
          .slice(session.lines.findLastIndex(line => line.startsWith('MAIL')))
          .filter(line => line.startsWith('RCPT')).length,
        unknown: countUnknown(asked),
        unknownHere: countUnknown(here),
        times: asked.filter(one => one.to === to).length,
      }
      return exists(to) && !isRefused(seen) ? '250 2.1.5 Ok' : REFUSED
    }),
  })
}

function shuffled(seed: number): string[] {
  const random = xorshift(seed)
  return [...EXISTING, ...OTHERS]
    .map(email => ({ email, rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ email }) => email)
}

/** Seeds of the order of addresses: one in `npm test`, two with all properties. */
const ORDERS = Array.from({ length: runs(2) }, (_, n) => n + 1)

describe.each(BLOCKS)('a server that blocks %s', (...block) => {
  test.each(ORDERS)('refuses no mailbox that exists: order %i', async seed => {
    const emails = shuffled(seed)
    const results = []
    const listFirst = createBlocking(block)
    results.push(...(await listFirst.many(emails)))
    for (const email of emails) {
      results.push(await listFirst.verify(email, { forceRefresh: true }))
    }
    const singlesFirst = createBlocking(block)
    for (const email of emails) results.push(await singlesFirst.verify(email))
    results.push(...(await singlesFirst.many(emails, { forceRefresh: true })))
    const wrong = results.filter(
      one => exists(one.email) && one.verdict.reason === 'rejected_email',
    )
    expect(wrong.map(({ email }) => email)).toEqual([])
  })
})

test('a list at a server that accepts one recipient only refuses no mailbox that exists', async () => {
  for (const seed of [1, 2, 3]) {
    const home = createBlocking(['all but one', seen => !seen.to.startsWith('user3@')])
    const wrong = (await home.many(shuffled(seed))).filter(
      one => exists(one.email) && one.verdict.reason === 'rejected_email',
    )
    expect(wrong).toEqual([])
  }
})

test('single verifications at such a server end as unknown after five', async () => {
  const home = createBlocking(['all but one', seen => !seen.to.startsWith('user3@')])
  const reasons = []
  for (const email of ['user3@a.test', ...EXISTING]) reasons.push(await home.reason(email))
  expect(reasons.filter(reason => reason === 'rejected_email').length).toBeLessThanOrEqual(5)
})
