import { describe, expect, test } from 'vitest'
import { DnsQuery, type DnsReply } from '../../../src/engine/dns/query.ts'
import { DnsFailover } from '../../../src/engine/dns/server-list.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

/** A query on transports that the test answers manually. */
function ask(...configured: string[]) {
  const clock = fakeClock()
  const servers = new DnsFailover({ clock, configured, system: () => [] })
  const calls: { server: string; say(reply: DnsReply): void; isCancelled: boolean }[] = []
  const transport = (server: string, say: (reply: DnsReply) => void) => {
    const call = { server, say, isCancelled: false }
    calls.push(call)
    return () => {
      call.isCancelled = true
    }
  }
  const question = new DnsQuery({ transport, servers, clock, timeoutMs: 5 * SECOND })
  question.start(0)
  return { clock, servers, calls, question, asked: () => calls.map(call => call.server) }
}

describe('a query', () => {
  test('a late fault of the first server does not start the next attempt early', async () => {
    const { clock, calls, asked } = ask('one', 'two')
    await clock.advance(SECOND)
    calls[0]?.say({ code: 'ESERVFAIL' })
    await clock.advance(999)
    expect(asked()).toEqual(['one', 'two'])
    await clock.advance(1)
    expect(asked()).toEqual(['one', 'two', 'one'])
  })

  test('an answer cancels the other attempts, and later replies are ignored', async () => {
    const { clock, calls, question } = ask('one', 'two')
    await clock.advance(2 * SECOND)
    calls[1]?.say({ code: 'ENOTFOUND' })
    expect(await question.answer).toEqual({ fault: 'no-name' })
    expect(calls.map(call => call.isCancelled)).toEqual([true, false, true])
    calls[0]?.say({ code: 'ENODATA' })
    await clock.advance(10 * SECOND)
    expect(await question.answer).toEqual({ fault: 'no-name' })
    expect([calls.length, clock.pending]).toEqual([3, 0])
  })

  test.each<
    [
      string,
      (query: ReturnType<typeof ask>) => Promise<unknown>,
      'first' | 'lost' | 'refused' | null,
    ]
  >([
    ['at once', async ({ calls }) => calls[0]?.say({ records: [] }), 'first'],
    [
      'late',
      async ({ clock, calls }) => {
        await clock.advance(1.5 * SECOND)
        calls[0]?.say({ records: [] })
      },
      'first',
    ],
    [
      'only to the second packet',
      async ({ clock, calls }) => {
        await clock.advance(1.5 * SECOND)
        calls[1]?.say({ code: 'ENOTFOUND' })
      },
      'lost',
    ],
    [
      'to the second packet after an error',
      async ({ calls }) => {
        calls[0]?.say({ code: 'ESERVFAIL' })
        calls[1]?.say({ records: [] })
      },
      null,
    ],
    [
      'by the second server after a refusal',
      async ({ calls }) => {
        calls[0]?.say({ code: 'EREFUSED' })
        calls[1]?.say({ records: [] })
      },
      'refused',
    ],
    [
      'by no server, refused by the second',
      async ({ calls }) => {
        calls[0]?.say({ code: 'ESERVFAIL' })
        calls[1]?.say({ code: 'EREFUSED' })
        calls[2]?.say({ code: 'ESERVFAIL' })
      },
      null,
    ],
    ['never', async ({ clock }) => clock.advance(5 * SECOND), null],
  ])('answered %s', async (_, run, delivery) => {
    const query = ask('one', 'two')
    await run(query)
    await query.question.answer
    expect(query.question.delivery).toBe(delivery)
  })

  test.each([
    ['three attempts if the only server fails', ['one'], ['one', 'one', 'one']],
    ['one attempt per server if all fail', ['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd']],
  ])('makes %s', async (_, configured, expected) => {
    const { calls, question, asked } = ask(...configured)
    for (let n = 0; calls[n] !== undefined; n++) calls[n]?.say({ code: 'ESERVFAIL' })
    expect(await question.answer).toEqual({ fault: 'server' })
    expect(asked()).toEqual(expected)
  })

  test('makes five attempts if no server replies, three once one reports an error', async () => {
    const silent = ask('one')
    await silent.clock.advance(5 * SECOND)
    expect(silent.asked()).toHaveLength(5)
    const failing = ask('one')
    await failing.clock.advance(3 * SECOND)
    expect(failing.asked()).toHaveLength(4)
    for (const call of failing.calls.slice(1)) call.say({ code: 'ESERVFAIL' })
    failing.calls[0]?.say({ code: 'ESERVFAIL' })
    expect(await failing.question.answer).toEqual({ fault: 'server' })
    expect(failing.asked()).toHaveLength(4)
  })

  test('a server that refuses is not retried', async () => {
    const { clock, calls, asked } = ask('one', 'two')
    calls[0]?.say({ code: 'EREFUSED' })
    await clock.advance(5 * SECOND)
    expect(asked()).toEqual(['one', 'two'])
  })

  test('a query that this process could not send is tried again later, and is no failure of the server', async () => {
    const { clock, calls, servers, question, asked } = ask('one', 'two')
    calls[0]?.say({ code: 'EMFILE' })
    await clock.advance(999)
    expect(asked()).toEqual(['one'])
    await clock.advance(5 * SECOND)
    expect(await question.answer).toEqual({ fault: 'timeout', isOurs: true })
    expect(servers.ordered()[0]).toBe('one')
  })

  test('a query cancelled before its start is never sent', async () => {
    const clock = fakeClock()
    const servers = new DnsFailover({ clock, configured: ['one'], system: () => [] })
    const transport = () => {
      throw new Error('the query was sent')
    }
    const question = new DnsQuery({ transport, servers, clock, timeoutMs: SECOND })
    question.cancel()
    question.start(0)
    expect(question.limitReductions).toBe(null)
    expect(await question.answer).toEqual({ fault: 'timeout' })
  })

  test('ends at once without servers', async () => {
    const { question, clock } = ask()
    expect(await question.answer).toEqual({ fault: 'timeout' })
    expect(clock.pending).toBe(0)
  })
})

describe('the list of servers', () => {
  test('an unresponsive server comes last for 30 s, or until it answers', async () => {
    const { clock, servers } = ask('one', 'two', 'three')
    servers.markUnresponsive('one')
    expect(servers.ordered()).toEqual(['two', 'three', 'one'])
    servers.markResponsive('one')
    expect(servers.ordered()).toEqual(['one', 'two', 'three'])
    servers.markUnresponsive('two')
    await clock.advance(30 * SECOND)
    expect(servers.ordered().indexOf('two')).toBe(1)
  })
})
