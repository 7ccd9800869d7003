import { describe, expect, test } from 'vitest'
import type { ProbeTarget } from '../../../src/engine/probe/mx-groups.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import type { MxSession } from '../../support/mx.ts'
import { ask, createTestProber, each, people, sorted } from '../../support/prober.ts'
import { isRandomRecipient, knows, recipientOf, toRecipients } from '../../support/recipients.ts'

/** The number of real recipients in each write that has any. */
const sizes = (writes: readonly string[]) =>
  writes.map(write => write.split('\r\n').filter(isRealRecipient).length).filter(count => count > 0)

/** Targets in domains that need no catch-all test. */
const tested = (emails: readonly string[]) => emails.map(email => ask(email, ['mx.test'], false))

const OFFERS_TLS = '250-mx.test\n250-PIPELINING\n250 STARTTLS'

const isRealRecipient = (line: string) =>
  line.startsWith('RCPT') && !isRandomRecipient(recipientOf(line))

describe('refused commands in one connection of a list', () => {
  test('limit the first write to eight recipients at a new operator', async () => {
    const home = createTestProber({})
    await home.run(tested(people(20)))
    expect(home.writes.map(sizes)).toEqual([[8, 12]])
  })

  test('do not limit the batch if few recipients were refused before', async () => {
    const home = createTestProber({})
    await home.run(tested(people(20)))
    await home.run(tested(people(20, 'b.test')))
    expect(home.writes.map(sizes)).toEqual([[8, 12], [20]])
  })

  test('reduce the batch size if many recipients were refused before', async () => {
    const half = people(8).filter((_, i) => i % 2 === 0)
    const home = createTestProber(knows(...half, ...people(40, 'b.test')))
    await home.run(people(8))
    await home.run(tested(people(20, 'b.test')))
    // Four of eight were refused, so the expected share is (4 + 1) / (8 + 1): eight of fourteen.
    expect(home.writes.map(sizes)).toEqual([[8], [14, 6]])
  })

  test('end the connection at eight, before the delay of Postfix after ten and its limit of twenty', async () => {
    const home = createTestProber(knows())
    const walk = await home.run(people(19))
    expect(sorted(walk.answers())).toEqual(each(people(19), 'rejected/no-mailbox'))
    expect(home.writes.map(sizes)).toEqual([[8], [8], [3]])
  })

  test('count alike for every reason', async () => {
    const home = createTestProber(
      toRecipients(() => '450 4.2.0 Greylisted, try again in 300 seconds'),
    )
    await home.run(people(16))
    expect(home.writes.map(sizes)).toEqual([[8], [8]])
  })

  test('include the recipients pipelined behind a MAIL that was refused because of missing TLS', async () => {
    let errors = 0
    const home = createTestProber({
      answer: (line: string, { lines }: MxSession) => {
        if (line.startsWith('EHLO')) return OFFERS_TLS
        if (line === 'STARTTLS') return '220 2.0.0 Ready'
        if (lines.includes('STARTTLS') || !/^(MAIL|RCPT)/.test(line)) return undefined
        errors++
        return line.startsWith('MAIL')
          ? '530 5.7.0 Must issue a STARTTLS command first'
          : '503 5.5.1 Need MAIL'
      },
    })
    const walk = await home.run(tested(people(40)))
    expect(walk.answers()).toHaveLength(40)
    expect(walk.told.every(({ probed }) => probed.answer.kind === 'accepted')).toBe(true)
    expect(errors).toBe(9)
    // The connection with the errors ends; later ones start with STARTTLS.
    expect(home.writes.map(sizes)).toEqual([[8], [8, 12], [20]])
  })
})

describe('recipients that a connection is not expected to reach', () => {
  const list = people(60)
  /** One in four is unknown, so eight refusals are reached after some thirty recipients. */
  const most = knows(...list.filter((_, i) => i % 4 !== 3))
  const run = async (options: Parameters<typeof createTestProber>[1] = {}) => {
    const home = createTestProber(most, options)
    const returned: string[] = []
    const how = {
      returned: (targets: readonly ProbeTarget[]) =>
        void returned.push(...targets.map(({ address }) => address.text)),
    }
    const walk = await home.run(tested(list), how)
    return { returned, walk }
  }
  const row = { recipientsPerSession: 60, recipientsPerTransaction: 60 }

  test('are returned once twenty replies tell the share of refusals, from the end', async () => {
    const { returned, walk } = await run({ row })
    // Of 8 and 18 recipients 6 were refused, so two more refusals follow within the next 8.
    expect(returned).toEqual(list.slice(8 + 18 + 8))
    expect(sorted(walk.told.map(({ email }) => email))).toEqual(sorted(list.slice(0, 34)))
  })

  test('are kept while no other connection may be opened', async () => {
    const { returned, walk } = await run({ row: { ...row, sessionsMax: 1 } })
    expect(returned).toEqual([])
    expect(walk.told).toHaveLength(list.length)
  })

  test('are kept if the caller takes none back', async () => {
    const home = createTestProber(most, { row })
    const walk = await home.run(tested(list))
    expect(walk.told).toHaveLength(list.length)
  })
})

describe('a server that requires TLS', () => {
  test.each(['MAIL', 'RCPT'])('at %s but cannot start it now defers all recipients', async at => {
    const home = createTestProber({
      answer: (line: string) => {
        if (line.startsWith('EHLO')) return OFFERS_TLS
        if (line === 'STARTTLS') return '454 4.7.0 TLS not available due to temporary reason'
        return line.startsWith(at) ? '530 5.7.0 Must issue a STARTTLS command first' : undefined
      },
    })
    const walk = await home.run(people(2))
    expect(walk.told.map(({ probed }) => probed.answer)).toMatchObject([
      { kind: 'deferred', stage: 'starttls' },
      { kind: 'deferred', stage: 'starttls' },
    ])
  })
})

test('a deadline that passes during a session reports the host', async () => {
  const home = createTestProber({ answer: line => (/^(MAIL|RCPT)/.test(line) ? null : undefined) })
  const walk = home.begin(['ann@a.test'], { single: true })
  await home.clock.advance(SECOND)
  walk.abort()
  await walk.end()
  expect(walk.only()).toMatchObject({
    answer: { kind: 'no-response' },
    host: 'mx.test',
    ip: '192.0.2.1',
  })
})
