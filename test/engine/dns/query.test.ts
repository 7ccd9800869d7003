import { describe, expect, test } from 'vitest'
import { DnsQuery, type DnsReply } from '../../../src/engine/dns/query.ts'
import { DnsFailover } from '../../../src/engine/dns/server-list.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

/** A question on wires that the test answers by hand. */
function ask(...given: string[]) {
  const clock = fakeClock()
  const servers = new DnsFailover({ clock, given, system: () => [] })
  const calls: { server: string; say(said: DnsReply): void; isHungUp: boolean }[] = []
  const wire = (server: string) => {
    const { promise, resolve } = Promise.withResolvers<DnsReply>()
    const call = { server, say: resolve, isHungUp: false }
    calls.push(call)
    return { said: promise, hangUp: () => (call.isHungUp = true) }
  }
  const question = new DnsQuery({ wire, servers, clock, timeoutMs: 5 * SECOND })
  question.ask()
  return { clock, servers, calls, question, asked: () => calls.map(call => call.server) }
}

describe('a question', () => {
  test('a late fault of the first server does not hurry the second', async () => {
    const { clock, calls, asked } = ask('one', 'two')
    await clock.advance(1.5 * SECOND)
    calls[0]?.say({ code: 'ESERVFAIL' })
    await clock.advance(1.4 * SECOND)
    expect(asked()).toEqual(['one', 'two'])
    await clock.advance(100)
    expect(asked()).toEqual(['one', 'two', 'one'])
  })

  test('the answer of one hangs up on all others, and what they say later is not heard', async () => {
    const { clock, calls, question } = ask('one', 'two')
    await clock.advance(3 * SECOND)
    calls[1]?.say({ code: 'ENOTFOUND' })
    expect(await question.answer).toEqual({ fault: 'no-name' })
    expect(calls.map(call => call.isHungUp)).toEqual([true, false, true])
    calls[0]?.say({ code: 'ENODATA' })
    await clock.advance(10 * SECOND)
    expect(await question.answer).toEqual({ fault: 'no-name' })
    expect([calls.length, clock.pending]).toEqual([3, 0])
  })

  test('a server that refuses is not asked this question again', async () => {
    const { clock, calls, asked } = ask('one', 'two')
    calls[0]?.say({ code: 'EREFUSED' })
    await clock.advance(5 * SECOND)
    expect(asked()).toEqual(['one', 'two'])
  })

  test('a question given up before its turn is never asked', async () => {
    const clock = fakeClock()
    const servers = new DnsFailover({ clock, given: ['one'], system: () => [] })
    const wire = () => {
      throw new Error('asked all the same')
    }
    const question = new DnsQuery({ wire, servers, clock, timeoutMs: SECOND })
    question.giveUp()
    await question.ask()
    expect(await question.answer).toEqual({ fault: 'timeout' })
  })

  test('without any server it ends at once', async () => {
    const { question, clock } = ask()
    expect(await question.answer).toEqual({ fault: 'timeout' })
    expect(clock.pending).toBe(0)
  })
})

describe('the list of servers', () => {
  test('one that kept silent comes last for 30 s, or until it answers', async () => {
    const { clock, servers } = ask('one', 'two', 'three')
    servers.unresponsive('one')
    expect(servers.inOrder()).toEqual(['two', 'three', 'one'])
    servers.answered('one')
    expect(servers.inOrder()).toEqual(['one', 'two', 'three'])
    servers.unresponsive('two')
    await clock.advance(30 * SECOND)
    expect(servers.inOrder().indexOf('two')).toBe(1)
  })
})
