import { describe, expect, test } from 'vitest'
import {
  isCurrent,
  isSingleWaiting,
  newTicket,
  type QueuePosition,
  reservedFor,
} from '../../../src/cluster/rate-control/stored-state.ts'
import { SECOND } from '../../../src/platform/clock.ts'

const NOW = Date.UTC(2026, 5, 1)
const waits = (seconds: number, single: boolean): QueuePosition => ({
  since: NOW - seconds * SECOND,
  single,
})
/**
 * Whether one waiting member precedes another, by the ticket of the one and the position of the
 * other.
 */
const isBefore = (one: QueuePosition, other: QueuePosition) =>
  reservedFor({ one: newTicket(one, NOW) }, 'other', other, NOW) === 1

describe('the order of waiting members', () => {
  test.each<[string, QueuePosition, QueuePosition]>([
    ['puts a client before a later one', waits(2, true), waits(1, true)],
    ['puts a client before a list', waits(0, true), waits(0, false)],
    ['puts a client before a list that waited a little longer', waits(0, true), waits(4, false)],
    ['puts a list before one that waited five seconds less', waits(6, false), waits(0, false)],
    ['puts a list that waited very long before a client', waits(11, false), waits(0, true)],
  ])('%s', (_, first, second) => {
    expect(isBefore(first, second)).toBe(true)
    expect(isBefore(second, first)).toBe(false)
  })

  test('keeps a list going while another has waited only briefly, because a change costs time', () => {
    expect(isBefore(waits(4, false), waits(0, false))).toBe(false)
  })

  test('ignores a ticket that is no longer renewed', () => {
    const tickets = { gone: newTicket(waits(60, true), NOW - 10 * SECOND) }
    expect(reservedFor(tickets, 'other', waits(0, false), NOW)).toBe(0)
    expect(isSingleWaiting(tickets, 'other', NOW)).toBe(false)
  })

  test('ignores the own ticket of a member', () => {
    const tickets = { own: newTicket(waits(9, true), NOW) }
    expect(reservedFor(tickets, 'own', waits(0, false), NOW)).toBe(0)
    expect(isSingleWaiting(tickets, 'own', NOW)).toBe(false)
    expect(isSingleWaiting(tickets, 'other', NOW)).toBe(true)
  })
})

test('always has a member that no other precedes', () => {
  const positions = Array.from({ length: 60 }, (_, n) => waits((n * 37) % 23, n % 3 === 0))
  for (let size = 1; size <= positions.length; size++) {
    const some = positions.slice(0, size)
    const tickets = Object.fromEntries(
      some.map((position, n) => [`m${n}`, newTicket(position, NOW)]),
    )
    const reserved = some.map((position, n) => reservedFor(tickets, `m${n}`, position, NOW))
    expect(Math.min(...reserved)).toBe(0)
  }
})

test('a ticket is renewed before it expires, or when its contents change', () => {
  const position = waits(1, false)
  const ticket = newTicket(position, NOW)
  expect(isCurrent(ticket, position, NOW + SECOND)).toBe(true)
  expect(isCurrent(ticket, position, NOW + 3 * SECOND)).toBe(false)
  expect(isCurrent(ticket, { ...position, single: true }, NOW)).toBe(false)
  expect(isCurrent(ticket, null, NOW)).toBe(false)
  expect(isCurrent(null, position, NOW)).toBe(false)
  expect(isCurrent(null, null, NOW)).toBe(true)
})
