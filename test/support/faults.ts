import { onTestFinished, vi } from 'vitest'
import type { MxScript, MxSession } from './mx.ts'
import { refused } from './mx.ts'
import { isRandomRecipient, recipientOf, users } from './recipients.ts'
import type { ZoneEntry } from './zone.ts'

/** Makes a method throw at its next call. Returns whether it has thrown. */
export function throwOnce(owner: object, method: string): () => boolean {
  const spy = vi.spyOn(owner as Record<string, () => unknown>, method)
  let hasThrown = false
  spy.mockImplementationOnce(() => {
    hasThrown = true
    throw new Error(`${method} is broken`)
  })
  onTestFinished(() => spy.mockRestore())
  return () => hasThrown
}

const BUSY = '192.0.2.80'
const DOWN = '192.0.2.81'
const VANITIES = Array.from({ length: 8 }, (_, n) => `vanity${n}.test`)

/**
 * A list that takes every way through a probe: accepted, rejected, greylisted, blocked and
 * unreachable addresses, exchangers that wait for the limit of their address, and a backup exchanger
 * at another operator. `expected` has the reason of each text. It needs two connections per second
 * and operator.
 */
export function variedList() {
  const zone: Record<string, ZoneEntry> = {
    'grey.test': { MX: [[10, 'mx.grey.test']] },
    'mx.grey.test': { A: ['192.0.2.3'] },
    'blocking.test': { MX: [[10, 'mx.blocking.test']] },
    'mx.blocking.test': { A: ['192.0.2.4'] },
    'down.test': { MX: [[10, 'mx.down.test']] },
    'mx.down.test': { A: [DOWN] },
    'mx.backup.example': { A: ['192.0.2.5'] },
    'backed.test': {
      MX: [
        [10, 'mx.down.test'],
        [20, 'mx.backup.example'],
      ],
    },
  }
  for (const name of VANITIES) {
    zone[name] = { MX: [[10, `mx.${name}`]] }
    zone[`mx.${name}`] = { A: [BUSY] }
  }
  const people = users(60)
  const isKnown = (_: string, i: number) => i % 4 !== 3
  const expected = new Map([
    ...people.map((text, i) => [text, isKnown(text, i) ? 'accepted_email' : 'rejected_email']),
    ...VANITIES.map(name => [`ann@${name}`, 'accepted_email']),
    ['ann@grey.test', 'accepted_email'],
    ['ann@blocking.test', 'probe_blocked'],
    ['ann@down.test', 'no_connect'],
    ['ann@backed.test', 'accepted_email'],
    ['ann@absent.test', 'invalid_domain'],
    ['nonsense', 'invalid_email'],
  ] as [text: string, reason: string][])
  const known = new Set(['ann', ...people.filter(isKnown).map(localPart)])
  const greylisted = new Set<string>()
  const script: MxScript = {
    connect: to => {
      if (to.ip === DOWN) throw refused(to)
    },
    answer: (line: string, { to: { ip } }: MxSession) => {
      const recipient = recipientOf(line)
      if (recipient === '') return undefined
      if (ip === '192.0.2.4' && !isRandomRecipient(recipient)) {
        return '554 5.7.1 Service unavailable; client host blocked using bl.example'
      }
      if (ip === '192.0.2.3' && !greylisted.has(recipient)) {
        greylisted.add(recipient)
        return '450 4.2.0 Greylisted, try again in 60 seconds'
      }
      return known.has(localPart(recipient)) ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
    },
  }
  return { zone, expected, script }
}

const localPart = (address: string) => address.split('@')[0] as string
