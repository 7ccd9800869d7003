import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { MxScript } from '../support/mx.ts'
import { isRandomRecipient, isRcpt, recipientOf, users } from '../support/recipients.ts'

const isMail = (line: string) => line.startsWith('MAIL')
const always = (isCommand: (line: string) => boolean, reply: string): MxScript => ({
  answer: line => (isCommand(line) ? reply : undefined),
})

/** Verifies lists one after another, and returns the reasons, hours and connections of each. */
async function verifyLists(script: (now: () => number) => MxScript, lists: readonly string[][]) {
  let now = () => 0
  const { many, clock, mx } = createTestEngine({ script: script(() => now()) })
  now = () => clock.now()
  const ended = []
  for (const list of lists) {
    const startedAt = now()
    const before = mx.sessions.length
    const results = await many(list)
    ended.push({
      reasons: [...new Set(results.map(({ verdict }) => verdict.reason))],
      replies: [...new Set(results.map(({ evidence }) => replyOf(evidence.answer)))],
      hours: (now() - startedAt) / HOUR,
      connections: mx.sessions.length - before,
    })
  }
  return ended
}

function replyOf(answer: object | null): number | null {
  return answer !== null && 'reply' in answer ? (answer.reply as { code: number }).code : null
}

describe('a list at a server that never serves it ends within five hours', () => {
  test.each<[string, MxScript, string, number]>([
    ['421 at the greeting', { greeting: '421 4.3.2 Try later' }, 'unavailable_smtp', 421],
    ['554 at the greeting', { greeting: '554 No SMTP service here' }, 'probe_blocked', 554],
    ['451 at MAIL', always(isMail, '451 4.3.0 Local problem'), 'unavailable_smtp', 451],
    ['421 at MAIL', always(isMail, '421 4.3.2 Shutting down'), 'unavailable_smtp', 421],
    ['452 at RCPT', always(isRcpt, '452 4.5.3 Too many recipients'), 'unavailable_smtp', 452],
    ['a block at MAIL', always(isMail, '550 5.7.1 192.0.2.9 blocked'), 'probe_blocked', 550],
    ['a block at RCPT', always(isRcpt, '550 5.7.1 Rejected due to policy'), 'probe_blocked', 550],
  ])('%s', async (_, script, reason, code) => {
    const [first, second] = await verifyLists(() => script, [users(500), users(500)])
    expect(first).toMatchObject({ reasons: [reason], replies: [code] })
    expect(first?.hours).toBeGreaterThanOrEqual(4)
    expect(first?.hours).toBeLessThan(5)
    expect(first?.connections).toBeLessThanOrEqual(10)
    // The server is tried again, but not for hours.
    expect(second).toMatchObject({ reasons: [reason], replies: [code] })
    expect(second?.hours).toBeLessThan(2)
    expect(second?.connections).toBeLessThanOrEqual(2)
  })
})

const knowsAll = (line: string) =>
  isRcpt(line) && isRandomRecipient(recipientOf(line)) ? '550 5.1.1 No such user' : undefined

test('a server that is down for three hours is waited for', async () => {
  const [list] = await verifyLists(
    now => {
      const startedAt = now()
      const isUp = () => now() - startedAt > 3 * HOUR
      return { greeting: () => (isUp() ? undefined : '421 4.3.2 Try later'), answer: knowsAll }
    },
    [users(500)],
  )
  expect(list?.reasons).toContain('accepted_email')
  expect(list?.hours).toBeLessThan(5)
})

test('a server that serves some recipients each time is not given up', async () => {
  const [list] = await verifyLists(
    now => {
      let times: number[] = []
      return {
        answer: line => {
          if (!isRcpt(line)) return undefined
          times = times.filter(at => at > now() - 20 * MINUTE)
          if (times.length >= 20) return '421 4.7.0 Too many recipients, try again in 20 minutes'
          times.push(now())
          return knowsAll(line)
        },
      }
    },
    [users(400)],
  )
  expect(list?.reasons).toEqual(['accepted_email'])
  expect(list?.hours).toBeGreaterThan(5)
})
