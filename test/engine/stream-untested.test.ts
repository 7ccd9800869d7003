import { describe, expect, test } from 'vitest'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { HANG_UP, type MxSession } from '../support/mx.ts'
import { isRandomRecipient, toRecipients, users } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const SLOW_DOWN = '450 4.7.1 Throttled, slow down'
const NO = '550 5.1.1 No such user'

/** Throttles a connection after this number of recipients. */
const throttles = (max: number, random: () => string | undefined = () => NO) => {
  const counts = new Map<MxSession, number>()
  return toRecipients((to, session) => {
    const count = (counts.get(session) ?? 0) + 1
    counts.set(session, count)
    if (count > max) return SLOW_DOWN
    return isRandomRecipient(to) ? random() : undefined
  })
}

const all = (emails: readonly string[], reason: string) =>
  emails.map(email => `${email} ${reason}`).toSorted()

describe('a list with a skipped catch-all probe', () => {
  test('sends it later after a throttle, without repeating accepted recipients', async () => {
    const texts = users(6)
    // The last recipient is throttled, so the first connection has no catch-all probe.
    const home = createTestEngine({ script: throttles(5) })
    expect(reasonsOf(await home.many(texts))).toEqual(all(texts, 'accepted_email'))
    const asked = home.recipients()
    expect(asked.filter(to => !isRandomRecipient(to))).toEqual([...texts, 'user5@a.test'])
    expect(asked.filter(isRandomRecipient)).toHaveLength(1)
    expect(home.mx.sessions).toHaveLength(2)
  })

  test('finds a catch-all domain with the later probe', async () => {
    const texts = users(6)
    const home = createTestEngine({ script: throttles(5, () => undefined) })
    expect(reasonsOf(await home.many(texts))).toEqual(all(texts, 'catch_all'))
  })

  test('keeps accepted recipients if every retry is throttled, and retries with one recipient', async () => {
    let isFirst = true
    const script = toRecipients(to => {
      if (to === 'user5@a.test') isFirst = false
      return isFirst ? undefined : SLOW_DOWN
    })
    const home = createTestEngine({ script })
    const results = await home.many(users(6))
    expect(reasonsOf(results)).toEqual([
      ...all(users(5), 'low_deliverability'),
      'user5@a.test unavailable_smtp',
    ])
    const known = results.filter(({ email }) => email !== 'user5@a.test')
    expect(known.map(({ evidence }) => evidence.catchAll)).toEqual(Array(5).fill(null))
    const randoms = home.recipients().filter(isRandomRecipient)
    expect(new Set(randoms).size).toBeLessThanOrEqual(1)
    expect(randoms.length).toBeLessThanOrEqual(3)
    expect(home.recipients().filter(to => /^user[0-4]@/.test(to))).toHaveLength(5)
  })

  test('uses another connection if the server closes after a recipient', async () => {
    const script = toRecipients((to, { lines }) => {
      if (lines.filter(line => line.startsWith('RCPT')).length > 1) return HANG_UP
      return isRandomRecipient(to) ? NO : undefined
    })
    const home = createTestEngine({ script })
    expect(reasonsOf(await home.many(['user0@a.test']))).toEqual(['user0@a.test accepted_email'])
    expect(home.mx.sessions).toHaveLength(2)
  })

  test('ends as low_deliverability at once with wait: false', async () => {
    const home = createTestEngine({ script: throttles(5) })
    const results = await home.many(users(6), { wait: false })
    expect(reasonsOf(results).slice(0, 5)).toEqual(all(users(5), 'low_deliverability'))
    expect(home.mx.sessions).toHaveLength(1)
  })

  test('resolves waiting rows when another row decides the domain', async () => {
    const zone = mail('slow.test', '192.0.2.2')
    let isFirst = true
    const script = toRecipients(to => {
      if (isRandomRecipient(to)) return isFirst ? HANG_UP : NO
      return undefined
    })
    const home = createTestEngine({ script, zone, engine: { greylistDelayMs: 600_000 } })
    async function* source() {
      yield 'ann@slow.test'
      while (!home.mx.sessions[0]?.closed) await drainEventLoop()
      isFirst = false
      yield 'bob@slow.test'
    }
    const results = await home.many(source())
    expect(reasonsOf(results)).toEqual(all(['ann@slow.test', 'bob@slow.test'], 'accepted_email'))
    expect(home.recipients().filter(isRandomRecipient)).toHaveLength(2)
    // The waiting row needed no third connection.
    expect(home.mx.sessions).toHaveLength(2)
  })
})
